"""Text files made from templates."""

from pathlib import Path
from typing import Any


def filled(template: Path, *, html: bool = False, **content: Any) -> str:
    """Return a template's text with ``content`` in its places; all that it names must be given."""
    import jinja2  # takes a tenth of a second: only where it is used

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=html,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not html,
    )
    return environment.get_template(template.name).render(content)
