"""What stands around a script: fields, modules, files."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from espha.model import ModelError, Project, model_digest
from espha.offline.spark_model import spark_model
from espha.reader import read_project
from espha.windows.shared.script_spec import Code, ScriptWindow
from support.models import source, xml

CODE = "<code>function create(d) end function begin() end</code>"
MODULE = '<lua-modules><lua-module name="tools"><code>tools = {}</code></lua-module></lua-modules>'
SNIPPET = (
    '<lua-snippets><lua-snippet name="sums"><description>adds</description>'
    "<code>function add(a, b) return a + b end</code></lua-snippet></lua-snippets>"
)


def read(body: str = CODE, head: str = "", before: str = "", **more: Any) -> Project:
    window = (
        f'<window-lua name="out" {head}><schema-string>id*:int64,x:int64,z:string</schema-string>'
        f"{body}</window-lua>"
    )
    windows = source("id*:int64,x:int64,y:double,z:string") + window
    edge = '<edge source="in" target="out"/>'
    return read_project(xml(windows, edge, before=before), **more)


def window(*arguments: str, **more: Any) -> ScriptWindow:
    found = read(*arguments, **more).windows["q/out"]
    assert isinstance(found, ScriptWindow)
    return found


def refusals(*arguments: str, **more: Any) -> str:
    with pytest.raises(ModelError) as caught:
        read(*arguments, **more)
    return "; ".join(problem.reason for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("", "id x y z"),
        ("<use/>", "id x y z"),
        ("<use>*</use>", "id x y z"),
        ('<use all="true"/>', "id x y z"),
        ("<use>x, z</use>", "x z"),
        ("<use>z\n x</use>", "x z"),
        ('<use exclude="true">x,y</use>', "id z"),
        ('<use exclude="false">x,y</use>', "x y"),
        ('<use exclude="x"/>', "id y z"),
    ],
)
def test_which_fields_a_script_gets(element: str, expected: str) -> None:
    (given,) = window(element + CODE).code.inputs
    assert " ".join(given.names) == expected
    names = ["id", "x", "y", "z"]
    assert [names[place] for place in given.places] == list(given.names)


def test_a_field_that_is_parsed_by_its_name_needs_no_use() -> None:
    code = "<code>function create(d) return esp_parseJsonFrom('z') end</code>"
    (given,) = window("<use>x</use>" + code).code.inputs
    assert given.names == ("x", "z")


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("", ""),
        ("<copy/>", "id x z"),
        ('<copy exclude="true">x</copy>', "id z"),
        ("<copy>id</copy>", "id"),
    ],
)
def test_which_fields_are_copied(element: str, expected: str) -> None:
    assert " ".join(window(element + CODE).copied) == expected


def test_an_excluded_field_that_is_not_there_is_a_warning() -> None:
    project = read('<use exclude="true">w</use>' + CODE)
    assert "field 'w' is missing" in project.warnings[0].reason


def test_how_a_script_is_called() -> None:
    head = (
        'init="begin" require="tools" expand-parms="true" process-blocks="1" encode-binary="true"'
    )
    code = window(CODE, head, MODULE + SNIPPET).code
    assert (code.init, code.require) == ("begin", ("tools",))
    assert code.expanded and code.blocks and code.encoded
    assert code.modules == (("tools", "tools = {}"),)
    assert [snippet.name for snippet in code.snippets] == ["sums"]


def test_modules_of_another_language_are_not_for_this_one() -> None:
    modules = MODULE.replace("lua", "python").replace("tools = {}", "tools = None")
    assert window(before=modules).code.modules == ()
    assert "there is no <lua-module> called 'tools'" in refusals(CODE, 'require="tools"', modules)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (MODULE.replace("tools = {}", "tools = {"), "unexpected symbol"),
        (MODULE.replace('name="tools"', ""), "a module needs a name of its own"),
        (MODULE * 2, "a module needs a name of its own"),
        (SNIPPET.replace("<code>", "<text>").replace("</code>", "</text>"), "needs a <code>"),
    ],
)
def test_bad_modules_are_refused(before: str, reason: str) -> None:
    assert reason in refusals(before=before)


def test_a_function_that_is_to_begin_must_be_there() -> None:
    assert "the script has no function 'start'" in refusals(CODE, 'init="start"')


def code_from(folder: Path, body: str = "<code-file>a.lua</code-file>", **more: Any) -> Code:
    return window(body, tokens={"ESP_PROJECT_HOME": str(folder)}, **more).code


def test_a_script_in_a_file_is_part_of_the_model(tmp_path: Path) -> None:
    script = "function create(d) return {id = 1} end"
    (tmp_path / "a.lua").write_text(script, encoding="utf-8")
    assert code_from(tmp_path).text == script
    body = "<code-file>@ESP_PROJECT_HOME@/a.lua</code-file>"
    assert code_from(tmp_path, body).text == script
    tokens = {"ESP_PROJECT_HOME": str(tmp_path)}
    within = read(f"<code>{script}</code>")
    assert model_digest(read(body, tokens=tokens)) == model_digest(within)


def test_a_file_can_be_in_the_package_beside_the_model(tmp_path: Path) -> None:
    script = "function create(d) return {id = 1} end"
    (tmp_path / "a.zip").write_bytes(b"no package")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as package:
        package.writestr("b/other/a.lua", "function create(d) return {id = 2} end")
        package.writestr("b/scripts/a.lua", script)
    assert code_from(tmp_path, "<code-file>scripts/a.lua</code-file>").text == script


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file below"),
        (b"\xff", "not text in UTF-8"),
        (b" " * 400_001, "more than 400000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "a.lua").write_bytes(content)
    tokens = {"ESP_PROJECT_HOME": str(tmp_path)}
    found = refusals("<code-file>a.lua</code-file>", tokens=tokens)
    assert "'a.lua' is not read" in found and reason in found


def test_a_model_that_is_only_checked_may_lack_its_files(tmp_path: Path) -> None:
    tokens = {"ESP_PROJECT_HOME": str(tmp_path)}
    project = read("<code-file>a.lua</code-file>", tokens=tokens, checking=True)
    assert "there is no such file" in project.warnings[0].reason


def test_without_a_folder_no_file_is_read() -> None:
    before = '<properties><property name="ESP_PROJECT_HOME">/etc</property></properties>'
    body = "<code-file>@ESP_PROJECT_HOME@/hostname</code-file>"
    assert "only the model itself is here" in refusals(body, before=before)


def test_a_function_that_is_not_there_is_a_warning() -> None:
    code = "function create(d) esp_parseJson('1') esp_fly(esp_own()) end function esp_own() end"
    found = [warning.reason for warning in read(f"<code>{code}</code>").warnings]
    assert found == ["esp_fly() is not there; what calls it fails"]


def test_a_deployed_model_has_its_files_in_it(tmp_path: Path) -> None:
    script = "function create(d) io.open('words.txt') return {id = 1} end"
    (tmp_path / "a.lua").write_text(script, encoding="utf-8")
    (tmp_path / "words.txt").write_bytes(b"\xff\n")
    body = "<code-file>a.lua</code-file>"
    text = f'<window-lua name="out"><schema-string>id*:int64</schema-string>{body}</window-lua>'
    model = xml(source("id*:int64") + text, '<edge source="in" target="out"/>', before=SNIPPET)
    tokens = {"ESP_PROJECT_HOME": str(tmp_path)}
    deployed = read_project(spark_model(model.encode(), tokens, {}, ["q/out"]))
    here = read_project(model, tokens=tokens)
    assert deployed.snippets == here.snippets
    found, expected = deployed.windows["q/out"], here.windows["q/out"]
    assert isinstance(found, ScriptWindow) and isinstance(expected, ScriptWindow)
    assert found.code == expected.code
    assert [(file.name, file.content()) for file in found.code.files] == [("words.txt", b"\xff\n")]
