"""The playground as one HTML file that needs nothing but itself."""

import json

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import pser
from pser.analysis.colours import DARK_PALETTE, PALETTE
from pser.analysis.packaged import packaged

SCRIPTS = ("rules.js", "view.js", "page.js")


def render_playground() -> str:
    """The whole page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(packaged("playground/page.html.j2")).render(
        version=pser.__version__,
        data=Markup(json.dumps({"colours": {"light": PALETTE, "dark": DARK_PALETTE}})),
        css=Markup(packaged("report/page.css") + packaged("playground/page.css")),
        js=Markup("\n".join(packaged(f"playground/{name}") for name in SCRIPTS)),
    )
