"""Checks of README and book without the program, for docs.py: links, names of files, the length of
sentences, and typed figures."""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOK = os.path.join(ROOT, "docs", "src")
BUILT = os.path.join(ROOT, "target", "book")

# Folders whose files a page may name in code, and endings that only files of this project have there.
FOLDERS = "benches configs data docs examples fuzz kernels python results scripts src tests".split()
ENDINGS = (".rs", ".cu", ".cuh", ".py", ".toml")
MOST_WORDS = 40


def pages():
    """README.md and every chapter of the book."""
    chapters = sorted(name for name in os.listdir(BOOK) if name.endswith(".md"))
    return [os.path.join(ROOT, "README.md"), *(os.path.join(BOOK, name) for name in chapters)]


def further():
    """Pages outside the book whose links and names are checked, too."""
    names = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "results/README.md", "results/fuzz.md", "python/README.md"]
    return [os.path.join(ROOT, name) for name in names]


def read(path):
    with open(path) as f:
        return f.read()


def in_project(path):
    return os.path.relpath(path, ROOT)


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


# --- Links and names of files -----------------------------------------------------------------------------

def anchors(text):
    """The anchors that mdBook and GitHub make of headings."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ (.*)$", without_code(text), flags=re.M):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        times = counts[name] = counts.get(name, -1) + 1
        found.add(f"{name}-{times}" if times else name)
    return found


def leads_elsewhere(target):
    return re.match(r"[a-z]+:", target)


def is_missing(name, stems):
    """Whether code names a file of this project that does not exist. A `*` is any text; a file `x.rs` is
    an example of a name."""
    stem, ending = os.path.splitext(os.path.basename(name))
    if stem == "x" or re.search("[A-Z]{3}", os.path.dirname(name)):
        return False
    if "/" not in name:
        return ending in ENDINGS and stem != "" and os.path.basename(name) not in stems
    first = name.split("/")[0]
    if first in FOLDERS:
        return not glob.glob(os.path.join(ROOT, name))
    return ending in ENDINGS and not os.path.isabs(name) and not glob.glob(os.path.join(ROOT, "src", name))


def names_of_files():
    """The names of all files in the folders of the project and at its root."""
    found = {name for name in os.listdir(ROOT)}
    for folder in FOLDERS:
        for _, _, names in os.walk(os.path.join(ROOT, folder)):
            found.update(names)
    return found


def wrong_names(page, stems):
    for name in re.findall(r"`([\w.*/-]+)`", without_code(read(page))):
        if is_missing(name, stems):
            yield f"{in_project(page)}: `{name}`: there is no such file"


def wrong_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(read(page)))):
        if leads_elsewhere(target):
            continue
        path, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(file):
            yield f"{in_project(page)}: {target}: there is no such file"
        elif anchor and file.endswith(".md") and anchor not in anchors(read(file)):
            yield f"{in_project(page)}: {target}: there is no such heading"


def wrong_links_of_the_built_book():
    for folder, _, names in os.walk(BUILT):
        for name in sorted(name for name in names if name.endswith(".html") and name not in ("404.html", "print.html")):
            page = os.path.join(folder, name)
            for target in re.findall(r'(?:href|src|srcset)="([^"#]+)', read(page)):
                if not leads_elsewhere(target) and not os.path.isfile(os.path.normpath(os.path.join(folder, target))):
                    yield f"{in_project(page)}: {target}: there is no such file in the built book"


def links():
    wrong, stems = [], names_of_files()
    for page in [*pages(), *further()]:
        wrong += wrong_links(page)
    for page in [*pages(), os.path.join(ROOT, "CONTRIBUTING.md")]:
        wrong += wrong_names(page, stems)
    summary = read(os.path.join(BOOK, "SUMMARY.md"))
    for name in sorted(os.listdir(BOOK)):
        if name.endswith(".md") and name != "SUMMARY.md" and f"({name})" not in summary:
            wrong.append(f"docs/src/{name} is not in SUMMARY.md")
    wrong += wrong_links_of_the_built_book()
    if wrong:
        raise SystemExit("\n".join(wrong))
    print("all relative links are valid, and the files that code names exist")


# --- Sentences --------------------------------------------------------------------------------------------

def paragraphs(text):
    """The paragraphs and items of lists, without code blocks, tables, pictures and headings."""
    text = re.sub(r"<!-- table: .*?<!-- end -->", "\n", without_code(text), flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    block = []
    for line in [*text.split("\n"), ""]:
        item = re.match(r"\s*(?:[-*]|\d+\.)\s+", line)
        is_text = line.strip() and not line.lstrip().startswith(("|", "#", "!", ">>>"))
        if block and (item or not is_text):
            yield " ".join(block)
            block = []
        if is_text:
            block.append(line[item.end() if item else 0:].strip())


def sentences(paragraph):
    """The sentences of a paragraph. Code counts as one word, and a link as its text."""
    text = re.sub(r"`[^`]*`", "code", paragraph)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.split(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z*\"(\[]|code)", text)


def words():
    """Names the sentences that are too long."""
    wrong = []
    for page in pages():
        for sentence in (sentence for paragraph in paragraphs(read(page)) for sentence in sentences(paragraph)):
            count = sum(1 for word in sentence.split() if re.search(r"\w", word))
            if count > MOST_WORDS:
                wrong.append(f"{in_project(page)}: {count} words in a sentence: {sentence}")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"no sentence has more than {MOST_WORDS} words")


# --- Figures of the studies -------------------------------------------------------------------------------

STUDIES = os.path.join(BOOK, "studies.md")
NUMBER = r"\d[\d,]*(?:\.\d+)?"
# Numbers with a unit, ranges and lists of them included, and numbers with decimals.
UNIT = r"(?:%|[mnuµ]?s|[GT]B/s|[GT]FLOP/s|[KMG]i?B|times)(?![\w/])"
FIGURE = re.compile(rf"{NUMBER}(?:(?:\sto\s|\sand\s|\sor\s|,\s){NUMBER})*\s{UNIT}|\d[\d,]*\.\d+")
# What the studies and the program themselves set.
CONSTANTS = ("more than 5 %", "sparsities of 0.5 to 0.99", "51.2 million entries")
# What is not prose: generated tables and figures, blocks of code, code, and the targets of links.
NO_PROSE = (r"<!-- (?:table|figure): .*?<!-- end -->", r"^```.*?^```", r"`[^`\n]*`", r"\]\([^)]*\)")
BLOCK = re.compile(r"<!-- table: ([\w-]+) -->(.*?)<!-- end -->", flags=re.S)


def without(text, pattern):
    """The text without what matches, with as many lines."""
    return re.sub(pattern, lambda match: "\n" * match.group(0).count("\n"), text, flags=re.S | re.M)


def typed_figures(text):
    """The figures in prose, with the numbers of their lines."""
    constants = (re.escape(constant).replace(r"\ ", r"\s") for constant in CONSTANTS)
    for pattern in (*NO_PROSE, *constants):
        text = without(text, pattern)
    for match in FIGURE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match.group(0).split())


def names_its_record(block):
    return "results/" in block and ("`solver " in block or "`scripts/" in block)


def figures():
    """Names the typed figures of the chapter on the studies, and its tables without a record
    and a command."""
    text, page = read(STUDIES), in_project(STUDIES)
    wrong = [f"{page}:{line}: {figure} is typed; generate it in scripts/docs_studies.py"
             for line, figure in typed_figures(text)]
    wrong += [f"{page}: table {name} does not name its record and the command"
              for name, block in BLOCK.findall(text) if block.strip() and not names_its_record(block)]
    if wrong:
        raise SystemExit("\n".join(wrong))
    print("no figure of the studies is typed, and each table names its record and the command")
