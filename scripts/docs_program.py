"""Tables of README and book that come from the program itself and from files of the project,
for docs_tables.py."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def registry(solver, *command):
    done = subprocess.run([solver, *command, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def markdown(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


STUDIES = ("block-band", "four-kernels", "seven-strategies", "serial-vs-cuda", "spmm")


def backends_table(solver, devices, of_studies):
    rows = []
    for row in registry(solver, "backends"):
        if row["device"] in devices and any(study in row["from"] for study in STUDIES) == of_studies:
            device = [row["device"]] if len(devices) > 1 else []
            rows.append([f"`{row['name']}`", *device, row["format"], row["from"], "yes" if row["deterministic"] else "no", row["summary"]])
    return markdown(["backend", *(["device"] if len(devices) > 1 else []), "format", "from", "deterministic", "summary"], rows)


def preconditioners_list(solver):
    rows = [[f"`{row['name']}`", row["summary"], "<br>".join(row["parameters"]).replace("|", "\\|")]
            for row in registry(solver, "preconditioners")]
    return markdown(["preconditioner", "summary", "parameters"], rows)


def generators_table(solver):
    rows = []
    for row in registry(solver, "matrices")["generators"]:
        form, _, example = row["form"].partition(", for example ")
        rows.append([f"`{row['name']}`", "`" + form.replace("|", "\\|") + "`", f"`{example}`"])
    return markdown(["generator", "form, with defaults", "example"], rows)


def catalog_table(solver):
    rows = []
    for row in registry(solver, "matrices")["catalog"]:
        stand_in = f"`{row['stand_in']}`" if row["stand_in"] else ""
        rows.append([f"[`{row['name']}`]({row['page']})", f"{row['rows']:,}", f"{row['entries']:,}", row["kind"] or "", stand_in])
    return markdown(["matrix", "rows", "nonzeros", "kind", "stand-in"], rows)


def file_block(language, name, part=(None, None)):
    """A file of the project as a block of code, or its lines from the first that contains a text up to the
    next that is equal to another.

    Attributes for tests are left out."""
    with open(os.path.join(ROOT, name)) as f:
        lines = [line.rstrip() for line in f if line.strip() != "#[cfg(test)]"]
    begin, end = part
    if begin:
        first = next(number for number, line in enumerate(lines) if begin in line) - 1
        lines = lines[first:lines.index(end, first) + 1]
    text = "\n".join(lines).strip("\n")
    return f"```{language}\n{text}\n```"
