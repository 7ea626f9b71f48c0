"""What mdBook gets of a chapter, for docs.py: links that stay within the book, tables whose names may be
broken and whose numbers keep their units, and narrow pictures for narrow screens."""
import html
import os
import re

# A picture X.svg of README or book has a narrow form X-narrow.svg of this width, in millimetres, for screens
# of at most so many pixels.
NARROW_MM = 89
NARROW_SCREEN = 620

UNITS = ("ns|us|ms|s|min|h|bytes|[KMG]i?B|TB|[KMGT]B/s|[MGT]FLOP/s|%|mm|million|billion|times")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`|<!--.*?-->)", flags=re.S | re.M)


def narrow(picture):
    """The name of the narrow form of a picture."""
    return picture.removesuffix(".svg") + "-narrow.svg"


def pictures(text):
    """The targets of the pictures of a page that are SVG files."""
    return re.findall(r"!\[[^\]]*\]\(([^)\s]+\.svg)\)", text)


def for_the_book(text, folder):
    """The text of a chapter whose files are in `folder`, a folder of docs/src."""
    redirections = [("](../../", "]("), ("](../docs/src/", "](../"), ("](results/README.md", "](results/index.md")]
    for old, new in redirections:
        text = text.replace(old, new)
    text = "\n".join(row_with_breaks(line) if line.startswith("|") else line for line in text.split("\n"))
    parts = CODE.split(text)
    parts[::2] = [with_pictures(with_units(part), folder) for part in parts[::2]]
    return "".join(parts)


def with_units(text):
    """The text with spaces that do not break between a number and its unit."""
    return re.sub(rf"(?<=\d) (?=(?:{UNITS})(?!\w))", "\u00a0", text)


def row_with_breaks(line):
    """A line of a table whose long names may be broken after a punctuation mark.

    Code becomes HTML for that: Markdown has no break within code."""
    def code(match):
        content = match.group(1).replace("\\|", "|")
        parts = [re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", part) for part in breakable(content)]
        return f"<code>{'<wbr>'.join(parts)}</code>"

    parts = re.split(r"(`[^`\n]+`|\]\([^)]*\))", line)
    parts[::2] = [re.sub(r"(?<=\w)(?:[:=]|,(?!\d))(?=[\w<>-])", r"\g<0><wbr>", part) for part in parts[::2]]
    parts[1::2] = [re.sub(r"^`(.+)`$", code, part) for part in parts[1::2]]
    return "".join(parts)


def breakable(content):
    """The parts of a name between which a line may end."""
    return re.split(r"(?<=[:=,_/])(?=\w)", content)


def with_pictures(text, folder):
    """The text with the narrow forms of its pictures, where there are any."""
    def picture(match):
        title, target = match.groups()
        if not os.path.exists(os.path.join(folder, narrow(target))):
            return match.group(0)
        source = f'<source media="(max-width: {NARROW_SCREEN}px)" srcset="{narrow(target)}">'
        return f'<picture>{source}<img src="{target}" alt="{html.escape(title)}"></picture>'
    return re.sub(r"!\[([^\]]*)\]\(([^)\s]+\.svg)\)", picture, text)
