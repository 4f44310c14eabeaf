"""What is called plain shell text is what the real bash runs: tried in a jail on many texts nobody thought of."""

import asyncio
import json
import random
import sys
from pathlib import Path

import pytest

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.paths import path_rules
from hatchway.gate.shell import parse_shell
from hatchway.sandboxes.jail import run_command

ALPHABET = """
ok ok ok evil evil a -x --y=z 'a' "a" '' "" ' " \\ $ $x ${x} $(evil) `evil` ` $( ) ( { } ; ;; & && | || |& !
# #a * ? [a] ~
< > >a <a <<E E <<<a <(evil) >(evil) 2>&1 >/dev/null 2>/dev/null &>/dev/null >&2 x=1 x=(a) [[ ]] (( ))
if then else fi for do
done while until case esac in function time coproc select {a,b} {1..3} , % : é $'a' $"a" "\\"" '\\''
@(a) +(a) a=b a#b a!b
"""
PIECES = ALPHABET.split()
GAPS = [" ", " ", " ", " ", "", "", "\n", "\t", "  ", ";", " ; ", "\\\n", "\r", "\v", "\u00a0", "&", "|"]
DRIVER = """
import glob, json, os, shutil, subprocess
texts, found = json.load(open("texts.json")), []
for text in texts:
    os.makedirs("log", exist_ok=True)
    before = set(os.listdir("."))
    theirs, ours = os.pipe()
    bash = subprocess.Popen(["/bin/bash", "-c", text], pass_fds=[ours], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={"PATH": os.path.abspath("bin"), "LOG": os.path.abspath("log")})
    os.close(ours)
    os.read(theirs, 1)  # ends with the last process of the text, also one in the background
    os.close(theirs)
    bash.wait()
    ran = [open(each, newline="").read().split("\\x01")[:-1] for each in glob.glob("log/*")]
    shutil.rmtree("log")
    found.append([ran, sorted(set(os.listdir(".")) - before)])
json.dump(found, open("found.json", "w"))
"""
PROGRAM = '#!/bin/sh\nprintf \'%s\\001\' "${0##*/}" "$@" > "$LOG/$$"\n'


def texts(number: int) -> list[str]:
    """Texts that the parser calls plain, of pieces put together by chance, the same every time."""
    chance, found = random.Random(7), dict[str, None]()
    while len(found) < number:
        pieces = [chance.choice(PIECES) for _ in range(chance.randint(1, 6))]
        text = "".join(piece + chance.choice(GAPS) for piece in ["ok ", *pieces] if piece)
        if parse_shell(text).is_plain:
            found[text] = None
    return list(found)


def test_plain_text_runs_the_commands_it_was_said_to_run_and_nothing_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "bin").mkdir()
    for name in ("ok", "evil"):
        (tmp_path / "bin" / name).write_text(PROGRAM)
        (tmp_path / "bin" / name).chmod(0o755)
    tried = texts(600)
    (tmp_path / "texts.json").write_text(json.dumps(tried))
    (tmp_path / "found.json").write_text("")
    for name in ("texts.json", "found.json"):
        (tmp_path / name).chmod(0o666)
    try:
        done = asyncio.run(run_command(["/usr/bin/python3", "-c", DRIVER], paths=path_rules(write=[tmp_path])))
    except SandboxUnavailable as e:
        pytest.skip(e.message)
    assert done.exit_code == 0, done.stderr
    odd = []
    for text, (ran, made) in zip(tried, json.loads((tmp_path / "found.json").read_text()), strict=True):
        said = [list(command) for command in parse_shell(text).commands]
        if made or any(command not in said for command in ran):
            odd.append((text, said, ran, made))
    assert odd == []


def test_the_texts_are_worth_trying() -> None:
    tried = texts(600)
    assert sum("evil" in text for text in tried) > 25
    assert sum("'" in text or '"' in text for text in tried) > 25
    assert sys.getsizeof("".join(tried)) > 2500
