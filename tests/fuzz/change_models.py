"""Changes of one thing in the file of a model, such as no fit would make it.

Unlike the damage of ``mutate_models``, each leaves all else as it should be: a whole
array of another type, order, size or value, one value of another kind, a key that is
not there, a list that is empty.
"""

import io
import json
import random
import zipfile

import numpy as np

from tests.fuzz.mutate_models import read_members

VALUES = ["null", "true", "-1", "0", "1", "1e308", "-1e308", "0.5", '"x"', '""']
VALUES += [str(2**53), "1" + "0" * 400, "NaN", "-Infinity"]

TYPES = ["f4", "f8", "i1", "u1", "u2", "i2", "u4", "i4", "u8", "i8", "?"]


def set_all(value):
    return lambda array, rng: np.full_like(array, value)


def swap_bytes(array, rng):
    return array.astype(array.dtype.newbyteorder(">"))


def change_type(array, rng):
    return array.astype(rng.choice(TYPES))


def drop_axis(array, rng):
    return np.take(array, [], axis=rng.randrange(array.ndim))


def add_one(array, rng):
    # The smallest number becomes the largest.
    return array + np.array(rng.choice([1, -1])).astype(array.dtype)


ANY = [
    swap_bytes,
    change_type,
    drop_axis,
    lambda array, rng: np.asfortranarray(array),
    lambda array, rng: array[::-1],
    lambda array, rng: np.repeat(array[:1], len(array), axis=0),
    lambda array, rng: np.repeat(array, 2, axis=0),
]
FLOATS = [set_all(each) for each in (1e308, -1e308, 0, np.inf, np.nan)]
FLOATS.append(lambda array, rng: -array)
WHOLE = [set_all(0), add_one]
FLAGS = [set_all(False), set_all(True), lambda array, rng: ~array]
OF_KIND = {"f": FLOATS, "i": WHOLE, "u": WHOLE, "b": FLAGS}


def change_array(member, rng):
    """Return another array, as the content of its file."""
    array = np.load(io.BytesIO(member))
    changes = ANY + OF_KIND.get(array.dtype.kind, [])
    if not array.ndim or array.dtype.kind not in "biuf":
        changes = [lambda array, rng: array]
    # What a number of another type cannot hold becomes any number.
    with np.errstate(all="ignore"):
        changed = rng.choice(changes)(array, rng)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(changed), allow_pickle=False)
    return buffer.getvalue()


def change_some_array(members, rng):
    """Change one array, or one of those that sparse rows are made of."""
    name = rng.choice([each for each in members if not each.endswith(".json")])
    if name.endswith(".npy"):
        return {**members, name: change_array(members[name], rng)}
    inner = read_members(members[name])
    part = rng.choice(["data", "indices", "indptr"]) + ".npy"
    inner[part] = change_array(inner[part], rng)
    return {**members, name: store(inner)}


def change_some_node(members, rng):
    """Change a value, drop a key, or empty or double a list."""
    schema = json.loads(members["schema.json"])
    node = rng.choice(list(list_parts(schema)))
    content = node["content"]
    if node["__loader__"] == "JsonNode":
        node["content"] = rng.choice(VALUES)
    elif node["__loader__"] == "DictNode" and content:
        del content[rng.choice(list(content))]
        node["key_types"]["content"].pop()
    else:
        node["content"] = rng.choice([[], content * 2]) if content else content
    text = json.dumps(schema)
    # What is no longer named has no array.
    return {
        name: text.encode() if name == "schema.json" else member
        for name, member in members.items()
        if name.endswith(".json") or f'"file": "{name}"' in text
    }


KINDS = {"array": change_some_array, "node": change_some_node}


def list_parts(node):
    """Yield dicts, lists and values of a description; of long lists the first few."""
    if isinstance(node, dict):
        if node.get("__loader__") in ("JsonNode", "DictNode", "ListNode", "TupleNode"):
            yield node
        for key, each in node.items():
            if key != "key_types":
                yield from list_parts(each)
    elif isinstance(node, list):
        for each in node[:3]:
            yield from list_parts(each)


def store(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def change(case, contents):
    """Return the changed file of a case.

    Parameters
    ----------
    case : tuple of (str, str, int)
        The kind of change, the name of a model, and the seed.
    contents : dict of str to bytes
        The files of all models.
    """
    kind, name, seed = case
    rng = random.Random(f"{kind} {name} {seed}")
    return store(KINDS[kind](read_members(contents[name]), rng))
