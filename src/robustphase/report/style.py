"""Colours and type, as CSS: one palette for the page and every chart, in light and dark."""

from __future__ import annotations

#: One accent, the colour of the answer; the rest tells further series apart.
_LIGHT = {
    "paper": "#ffffff",
    "panel": "#f6f8fa",
    "ink": "#19212b",
    "muted": "#566170",
    "line": "#dfe4ea",
    "accent": "#0a6c89",
    "warn": "#b3470f",
    "s0": "#0a6c89",
    "s1": "#b3470f",
    "s2": "#3c7a34",
    "s3": "#7a4aa5",
    "s4": "#a8324a",
    "s5": "#7d6310",
    "s6": "#3757b5",
    "s7": "#626b76",
}
_DARK = {
    "paper": "#12171e",
    "panel": "#1a2129",
    "ink": "#e6eaef",
    "muted": "#9daab8",
    "line": "#2d3742",
    "accent": "#63c5e0",
    "warn": "#f0955a",
    "s0": "#63c5e0",
    "s1": "#f0955a",
    "s2": "#8fce83",
    "s3": "#c4a2ea",
    "s4": "#f08a9d",
    "s5": "#d9bc5a",
    "s6": "#9bb2f5",
    "s7": "#a9b3be",
}
#: Series that have a colour of their own; further ones begin again, with another dash.
COLOURS = 8

_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--rp-{name}:{value};" for name, value in palette.items())


def palette_css(root: str = ":root") -> str:
    """The variables, dark where the reader prefers it; light on paper."""
    return (
        f"{root}{{{_variables(_LIGHT)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{{root}{{{_variables(_DARK)}}}}}\n"
    )


CHART_CSS = (
    f""".rp-chart{{display:block;width:100%;height:auto;font-family:{_FONT};font-size:12px}}
.rp-chart text{{fill:var(--rp-muted);font-variant-numeric:tabular-nums}}
.rp-chart .rp-title{{fill:var(--rp-ink);font-size:14px;font-weight:600}}
.rp-chart .rp-ink{{fill:var(--rp-ink)}}
.rp-chart .rp-note{{font-size:11px}}
.rp-chart .rp-grid{{stroke:var(--rp-line);stroke-width:1;fill:none}}
.rp-chart .rp-axis{{stroke:var(--rp-muted);stroke-width:1;fill:none}}
.rp-chart .rp-whisker{{stroke:var(--rp-ink);stroke-width:1.2;fill:none}}
.rp-chart .rp-line{{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round}}
.rp-chart .rp-points{{fill:none;stroke:var(--c);stroke-linecap:round}}
.rp-chart .rp-band{{fill:var(--c);fill-opacity:.2;stroke:none}}
.rp-chart .rp-bar{{fill:var(--c);fill-opacity:.42;stroke:none}}
.rp-chart .rp-solid{{fill:var(--c);fill-opacity:.85;stroke:none}}
.rp-chart .rp-step{{fill:none;stroke:var(--c);stroke-width:1.5}}
.rp-chart image{{image-rendering:pixelated}}
"""
    + "\n".join(f".rp-chart .rp-s{index}{{--c:var(--rp-s{index})}}" for index in range(COLOURS))
    + "\n"
)

PAGE_CSS = (
    f"""*{{box-sizing:border-box}}
html{{color-scheme:light dark;-webkit-text-size-adjust:100%}}
body{{margin:0;background:var(--rp-paper);color:var(--rp-ink);font:16px/1.55 {_FONT}}}
main{{max-width:1060px;margin:0 auto;padding:40px 24px 72px}}
"""
    """h1,h2{font-family:"Iowan Old Style","Palatino Linotype",Palatino,Georgia,"DejaVu Serif",serif;font-weight:600;
line-height:1.25;text-wrap:balance}
h1{font-size:clamp(1.4rem,3.4vw,2.05rem);margin:.3em 0 .6em;max-width:34em}
h1.warn,p.warn{color:var(--rp-warn)}
h2{font-size:1.3rem;margin:0 0 .8em;padding-top:1.1em;border-top:1px solid var(--rp-line)}
section{margin-top:2.4em}
p{margin:0 0 .8em;max-width:46em}
.kicker{color:var(--rp-muted);font-size:.86rem;letter-spacing:.02em;margin:0;overflow-wrap:anywhere}
.lede p{font-size:1.02rem;margin-bottom:.4em}
.note{color:var(--rp-muted);font-size:.86rem;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:1px;margin:1.6em 0 0;
background:var(--rp-panel);border:1px solid var(--rp-line);border-radius:8px;overflow:hidden}
.tiles div{box-shadow:0 0 0 1px var(--rp-line);padding:12px 14px}
.tiles dt{color:var(--rp-muted);font-size:.8rem}
.tiles dd{margin:0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums;color:var(--rp-accent)}
.tiles dd.below{font-size:.78rem;font-weight:400;color:var(--rp-muted);line-height:1.35}
.checks{list-style:none;margin:1.4em 0 0;padding:0;display:grid;
grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));
gap:.45em 1.6em;font-size:.92rem}
.checks li{padding-left:1.9em;position:relative;overflow-wrap:anywhere}
.checks .mark{position:absolute;left:0;top:.12em;width:1.3em;height:1.3em;line-height:1.3em;text-align:center;border-radius:50%;
font-weight:700;font-size:.82rem;color:var(--rp-paper);background:var(--rp-accent)}
.checks .look .mark{background:var(--rp-warn)}
.grid{display:grid;gap:28px 36px;margin:0 0 1.4em}
.charts{grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));align-items:start}
.pictures{grid-template-columns:repeat(auto-fill,minmax(min(45%,215px),1fr))}
.pictures.small{grid-template-columns:repeat(auto-fill,minmax(min(45%,165px),1fr))}
.grid.pictures{gap:18px 20px;align-items:end}
figure{margin:0;min-width:0}
.scroll{overflow-x:auto;margin:0 0 1.6em;
background:linear-gradient(90deg,var(--rp-paper) 30%,transparent) left/40px 100% no-repeat local,
linear-gradient(270deg,var(--rp-paper) 30%,transparent) right/40px 100% no-repeat local,
linear-gradient(90deg,var(--rp-line),transparent) left/14px 100% no-repeat scroll,
linear-gradient(270deg,var(--rp-line),transparent) right/14px 100% no-repeat scroll}
.scroll:focus-visible{outline:2px solid var(--rp-accent);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums lining-nums}
.caption{color:var(--rp-muted);margin:0 0 .4em;font-size:.86rem}
th,td{padding:.34em .7em;text-align:right;border-bottom:1px solid var(--rp-line);white-space:nowrap}
th:first-child,td:first-child{padding-left:0}
tbody th{font-weight:600;text-align:left}
thead th{color:var(--rp-muted);font-weight:500;vertical-align:bottom}
th.words,td.words{text-align:left}
table[data-table=comparison] :is(td.words,tbody th),table[data-table=reasons] td.words{white-space:normal;min-width:7.5em}
table[data-table=comparison] tbody th{overflow-wrap:anywhere}
td.bar{width:30%;min-width:70px}
.meter{display:block;height:9px;border-radius:2px;background:var(--rp-accent);min-width:0}
tr.ours th,tr.ours td{color:var(--rp-accent);font-weight:600}
dl{margin:0 0 1em}
section dl div{display:grid;grid-template-columns:minmax(8em,12em) 1fr;gap:0 1em;padding:.34em 0;
border-bottom:1px solid var(--rp-line)}
section dt{color:var(--rp-muted)}
section dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
ul{padding-left:1.2em}
section ul{max-width:48em}
section li{margin:.25em 0}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.84rem}
pre{background:var(--rp-panel);border:1px solid var(--rp-line);border-radius:8px;padding:12px 14px;overflow-x:auto;
white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:600px){main{padding:22px 16px 48px}section dl div{grid-template-columns:1fr}
.tiles{grid-template-columns:repeat(2,1fr)}.grid{gap:20px}
table{font-size:.82rem}th,td{padding:.34em .45em}}
@media print{main{max-width:none;padding:0}body{font-size:11pt}.tiles,.meter,.checks .mark,svg{print-color-adjust:exact}
figure,tr,.tiles,pre{break-inside:avoid}h2{break-after:avoid}.scroll{overflow:visible}
.charts{grid-template-columns:1fr 1fr}.grid.pictures{grid-template-columns:repeat(4,1fr)}th,td{padding:.2em .4em}}
"""
)
