"""Pictures of a comparison as SVG: a panel for each precision and batch, a bar for each contender, as long as
its figure (latency, images a second) over that of convsched's best. Readable on light and on dark pages."""
import dataclasses
import re
from xml.sax.saxutils import escape

WIDTH, MARGIN, LABEL, UNIT, MOST = 760, 16, 190, 120, 4  # pixels; a bar ends at MOST times convsched's best
HEADING, ROW, BAR, GAP = 26, 20, 13, 16
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 }
.heading { font-weight: 600 } .page { fill: #ffffff } .ours { fill: #0969da } .best { fill: #fb8f44 }
.peer { fill: #c4ccd4 } .outside { fill: none; stroke: #9aa4ae } .one { stroke: #0969da } .wanted { stroke: #1a7f37 }
line { stroke-width: 1 } .wanted { stroke-dasharray: 4 3 } text.wanted { stroke: none; fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #0d1117 } .ours { fill: #58a6ff } .best { fill: #bd561d } .peer { fill: #484f58 }
.outside { stroke: #8b949e } .one { stroke: #58a6ff } .wanted { stroke: #3fb950 } text.wanted { fill: #3fb950 }
}
"""


@dataclasses.dataclass
class Bar:
    label: str
    value: float
    kind: str  # ours, best (of the peers), peer, outside (the ratio)


@dataclasses.dataclass
class Panel:
    heading: str
    bars: list
    one: float  # the value of convsched's best
    wanted: float | None = None  # what the best peer is to be at least, in that
    unit: str = "µs"
    digits: int = 1  # behind the point


def text(x, y, words, kind=None, anchor=None):
    more = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def bar(row, y, drawn):
    times = row.value / drawn.one
    width = min(times, MOST) * UNIT
    left = MARGIN + LABEL
    figures = f"{row.value:.{drawn.digits}f} {drawn.unit}, {times:.2f}×" + (" (cut off)" if times > MOST else "")
    return [text(left - 6, y + BAR - 2, row.label, anchor="end"),
            f'<rect class="{row.kind}" x="{left}" y="{y}" width="{width:.1f}" height="{BAR}"/>',
            text(left + width + 6 if width < 3 * UNIT else left + width - 6, y + BAR - 2, figures,
                 anchor=None if width < 3 * UNIT else "end")]


def upright(kind, times, top, bottom):
    x = MARGIN + LABEL + times * UNIT
    return f'<line class="{kind}" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'


def panel(drawn, top):
    """(elements, where it ends)."""
    bottom = top + HEADING + ROW * len(drawn.bars)
    parts = [text(MARGIN, top + 14, drawn.heading, "heading")]
    for index, row in enumerate(drawn.bars):
        parts += bar(row, top + HEADING + ROW * index, drawn)
    parts.append(upright("one", 1, top + HEADING - 4, bottom))
    if drawn.wanted:
        parts.append(upright("wanted", drawn.wanted, top + HEADING - 4, bottom))
        parts.append(text(MARGIN + LABEL + drawn.wanted * UNIT + 4, top + 14, f"wanted: best peer at {drawn.wanted:g}×",
                          "wanted"))
    return parts, bottom + GAP


def picture(title, panels):
    parts, top = [text(MARGIN, 26, title, "title")], 42
    for drawn in panels:
        more, top = panel(drawn, top)
        parts += more
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}" '
            f'role="img"><title>{escape(title)}</title><style>{STYLE}</style>'
            f'<rect class="page" width="{WIDTH}" height="{top}"/>')
    return "\n".join([head, *parts, "</svg>", ""])


def file_name(model, device):
    return re.sub(r"[^a-z0-9]+", "-", f"{model}-{device}".lower()).strip("-") + ".svg"


def write(made, folder):
    """The files of {model: (file name, SVG)} into `folder`; None: nowhere."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in made.values():
        (folder / name).write_text(svg, encoding="utf-8")
