import os
import shutil
import subprocess
import sys

import pytest

from tests.cli.example import run_corral

PROGRAM = "from corral.cli import main; main()"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed(shell):
    result = run_corral("completion", shell)
    assert result.exit_code == 0
    assert f"_CORRAL_COMPLETE={shell}_complete" in result.stdout


def test_without_a_shell_it_says_how():
    text = run_corral("completion").stdout
    assert 'eval "$(corral completion bash)"' in text
    assert "corral completion fish | source" in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("corral pre", ["predict"]),
        ("corral fit data.csv --n-c", ["--n-clusters"]),
        ("corral fit data.csv --method kmeans", ["kmeans--", "kmeans+1"]),
        ("corral fit data.csv --scale ro", ["robust"]),
        ("corral datasets f", ["fetch"]),
    ],
)
def test_words_are_completed(line, expected):
    # As the script of bash asks for them.
    words = line.split()
    environment = os.environ | {
        "_CORRAL_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    code = f"import sys; sys.argv = ['corral']; {PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    found = [each.partition(",")[2] for each in done.stdout.splitlines()]
    assert found == expected


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_reads_its_script():
    script = run_corral("completion", "bash").stdout
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\ncomplete -p corral"],
        capture_output=True,
        text=True,
    )
    assert "_corral_completion corral" in done.stdout
