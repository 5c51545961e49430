"""Modules linked into one script do the same as in the browser."""

from __future__ import annotations

import pytest

from skillpress.core.errors import UserError
from skillpress.reports.viewer.page_file import ENTRY, PAGE
from skillpress.reports.viewer.page_script import linked


def folder_of(tmp_path, **modules: str):
    for name, text in modules.items():
        (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
    return tmp_path


def test_names_of_two_modules_do_not_meet(browser, tmp_path):
    folder = folder_of(
        tmp_path,
        first='import { one, two as deux } from "./second.js";\nconst own = 1;\n'
        "export function sum() {\n  return own + one + deux();\n}\n",
        second='import ten from "./third.js";\nconst own = 20;\nexport const one = own;\n'
        "function hidden() {\n  return ten(own);\n}\nexport{hidden as two};\n//# sourceMappingURL=x.map\n",
        third="export default function(number){return 10 * number}",
    )
    page = browser.new_page()
    assert (
        page.evaluate(f'() => {{ {linked(folder, "first.js")}; return modules["first.js"].sum(); }}') == 221
    )
    page.close()


def test_a_module_stands_once_however_many_import_it(tmp_path):
    folder = folder_of(
        tmp_path,
        top='import { a } from "./left.js";\nimport { b } from "./right.js";\n',
        left='import { shared } from "./shared.js";\nexport const a = shared;\n',
        right='import { shared } from "./shared.js";\nexport const b = shared;\n',
        shared="export const shared = 1;\n",
    )
    assert linked(folder, "top.js").count('modules["shared.js"] =') == 1


@pytest.mark.parametrize(
    ("modules", "told"),
    [
        ({"a": 'import { b } from "./b.js";\n'}, "b.js: no such module, which a.js imports"),
        (
            {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\nexport const b = 1;\n'},
            "import each other: a.js -> b.js -> a.js",
        ),
        ({"a": 'import * as all from "./b.js";\n'}, "a.js: 'import * as all"),
        ({"a": 'const b = await import("./b.js");\n'}, "not a form of import or export"),
        ({"a": "export let state = 1;\n"}, "a.js: 'export let state = 1;'"),
    ],
    ids=["missing", "in a circle", "a namespace", "while it runs", "a variable"],
)
def test_what_cannot_be_linked_is_refused_by_name(tmp_path, modules, told):
    with pytest.raises(UserError) as refused:
        linked(folder_of(tmp_path, **modules), "a.js")
    assert told in str(refused.value)


def test_every_module_of_the_page_is_in_its_script():
    script = linked(PAGE, ENTRY)
    files = [path.relative_to(PAGE).as_posix() for path in [*PAGE.rglob("*.js"), *PAGE.rglob("*.mjs")]]
    assert [name for name in files if f'modules["{name}"] =' not in script] == []
