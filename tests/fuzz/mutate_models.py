"""Ways to damage the file of a model, each with a seed that repeats it."""

import io
import json
import random
import zipfile

import numpy as np

# Numbers, texts and others that find what was not thought of.
NUMBERS = [0, 1, -1, 2, 7, 255, 2**31, -(2**31), 2**63 - 1, 2**64, 10**30]
FLOATS = [0.0, -0.0, 0.5, -1.5, 1e308, 5e-324, np.inf, -np.inf, np.nan]
DEEP = "what is nested deeply"
OTHERS = [None, True, False, "", "auto", "euclidean", "cosine", "kmeans", "x" * 100]

CLASSES = [
    ("corral._cor", "COR"),
    ("corral._assign", "Layout"),
    ("corral._row_book", "RowBook"),
    ("corral._tiles", "RowSpace"),
    ("corral.rivals._kcc", "KCC"),
    ("corral.tables._scales", "Scales"),
    ("corral.tables._model", "TableModel"),
    ("sklearn.cluster._kmeans", "KMeans"),
    ("sklearn.svm._classes", "SVC"),
    ("builtins", "eval"),
    ("builtins", "dict"),
    ("os", "system"),
    ("numpy", "ndarray"),
    ("numpy", "load"),
]

LOADERS = [
    "ObjectNode",
    "DictNode",
    "ListNode",
    "TupleNode",
    "JsonNode",
    "TypeNode",
    "FunctionNode",
    "MethodNode",
    "PartialNode",
    "CachedNode",
    "NdArrayNode",
    "SparseMatrixNode",
    "ConstructorFromReduceNode",
    "OperatorFuncNode",
    "TreeNode",
]


def flip_bits(content, rng, others):
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def change_bytes(content, rng, others):
    start = rng.randrange(len(content))
    stop = min(len(content), start + rng.choice([1, 2, 4, 16, 64]))
    fresh = rng.randbytes(rng.choice([0, stop - start, stop - start, 100]))
    return content[:start] + fresh + content[stop:]


def truncate(content, rng, others):
    return content[: rng.randrange(len(content))]


def splice(content, rng, others):
    other = rng.choice(others)
    return content[: rng.randrange(len(content))] + other[rng.randrange(len(other)) :]


def change_schema(content, rng, others):
    """Change the description in one to three places."""
    members = read_members(content)
    schema = json.loads(members["schema.json"])
    for _ in range(rng.choice([1, 1, 2, 3])):
        change_node(schema, rng)
    depth = rng.choice([50, 500, 100_000])
    deep = '{"content": [' * depth + "]}" * depth
    members["schema.json"] = json.dumps(schema).replace(f'"{DEEP}"', deep).encode()
    return write_members(members)


def change_value(content, rng, others):
    """Change one number or text of the model into another of its kind, or not."""
    members = read_members(content)
    schema = json.loads(members["schema.json"])
    nodes = [each for each in list_nodes(schema) if each.get("is_json")]
    for node in rng.sample(nodes, min(len(nodes), rng.choice([1, 1, 3]))):
        node["content"] = json.dumps(draw_like(json.loads(node["content"]), rng))
    members["schema.json"] = json.dumps(schema).encode()
    return write_members(members)


def change_header(content, rng, others):
    """Change what an array says of itself."""
    members = read_members(content)
    name = rng.choice([each for each in members if each.endswith(".npy")])
    array = np.load(io.BytesIO(members[name]))
    shape = list(array.shape) or [1]
    place = rng.randrange(len(shape))
    shape[place] = rng.choice([0, 1, -1, shape[place] + 1, 2**40, 2**62, 10**30])
    dtypes = [array.dtype.str, "<f4", "|O", "<U1000000000", "<U0", "|V8", "<M8[s]"]
    header = {
        "descr": rng.choice(dtypes),
        "fortran_order": rng.choice([False, True]),
        "shape": tuple(rng.choice([array.shape, shape, shape * 20])),
    }
    text = rng.choice([repr(header), "(" * 5000, repr(header)[:-5]]).encode()
    head = b"\x93NUMPY" + bytes([rng.choice([1, 1, 1, 2, 3, 9]), 0])
    length = len(text).to_bytes(2, "little")
    members[name] = head + length + text + array.tobytes()
    return write_members(members)


def change_array(content, rng, others):
    """Change the values, the shape or the type of an array."""
    members = read_members(content)
    names = [each for each in members if each.endswith(".npy")]
    for name in rng.sample(names, min(len(names), rng.choice([1, 1, 2]))):
        array = np.load(io.BytesIO(members[name])).copy()
        buffer = io.BytesIO()
        np.save(buffer, change_numbers(array, rng), allow_pickle=False)
        members[name] = buffer.getvalue()
    return write_members(members)


def change_sparse(content, rng, others):
    """Change sparse rows, whose numbers are followed; other models are cut."""
    members = read_members(content)
    names = [each for each in members if each.endswith(".npz")]
    if not names:
        return change_array(content, rng, others)
    name = rng.choice(names)
    inner = read_members(members[name])
    part = rng.choice(list(inner))
    buffer = io.BytesIO()
    array = np.load(io.BytesIO(inner[part])).copy()
    np.save(buffer, change_numbers(array, rng), allow_pickle=False)
    inner[part] = rng.choice([*[buffer.getvalue()] * 3, b"", inner[part][9:]])
    members[name] = write_members(inner)
    return write_members(members)


def graft(content, rng, others):
    """Replace a part by one of the same class of another model, with its arrays."""
    members, theirs = read_members(content), read_members(rng.choice(others))
    schema = json.loads(members["schema.json"])
    parts = [each for each in list_nodes(schema)[1:] if "__loader__" in each]
    part = rng.choice([each for each in parts if each["__loader__"] != "TypeNode"])
    twins = [
        each
        for each in list_nodes(json.loads(theirs["schema.json"]))
        if each.get("__class__") == part["__class__"]
    ]
    if twins:
        part.clear()
        part.update(rng.choice(twins))
    # Their arrays get numbers of their own, or else are taken from this model.
    shift = rng.choice([1000, 1000, 0])
    for each in list_nodes(part):
        if "file" in each:
            number, ending = each["file"].split(".")
            each["__id__"] = int(number) + shift
            file = f"{each['__id__']}.{ending}"
            members.setdefault(file, theirs.get(each["file"], b""))
            each["file"] = file
    used = {each["file"] for each in list_nodes(schema) if "file" in each}
    kept = {name: members[name] for name in sorted(used | {"corral.json"})}
    return write_members({**kept, "schema.json": json.dumps(schema).encode()})


def change_members(content, rng, others):
    """Drop, add, rename, swap or repeat members."""
    members = list(read_members(content).items())
    place = rng.randrange(len(members))
    name, member = members[place]
    kind = rng.randrange(6)
    if kind == 0:
        del members[place]
    elif kind == 1:
        names = ["../x.npy", "/etc/passwd", "1.npy", "x.pkl", "schema.json", "a/b.npy"]
        members.append((rng.choice(names), rng.choice([member, b"", b"\x80\x04."])))
    elif kind == 2:
        members[place] = (rng.choice(["0.npy", "9.npz", name.upper()]), member)
    elif kind == 3:
        other = rng.randrange(len(members))
        members[place] = (name, members[other][1])
        members[other] = (members[other][0], member)
    elif kind == 4:
        members.insert(rng.randrange(len(members)), (name, member))
    else:
        theirs = read_members(rng.choice(others))
        members[place] = (name, rng.choice(list(theirs.values())))
    return write_members(members)


def change_archive(content, rng, others):
    """Change what the archive says of a member, at both places where it does."""
    content = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(bytes(content))) as archive:
        info = rng.choice(archive.infolist())
        entry = content.find(info.filename.encode(), archive.start_dir) - 46
    # Flags, method and sizes lie two bytes further in the directory.
    local, width = rng.choice([(6, 2), (8, 2), (18, 4), (22, 4)])
    central = local + 2
    value = rng.choice([0, 1, 9, 12, 14, 99, 2**16 - 1, 2**31, 2**32 - 1])
    fresh = (value % 256**width).to_bytes(width, "little")
    content[entry + central : entry + central + width] = fresh
    if rng.random() < 0.7:
        start = info.header_offset + local
        content[start : start + width] = fresh
    return bytes(content)


def change_page(content, rng, others):
    members = read_members(content)
    page = json.loads(members["corral.json"])
    key = rng.choice([*page, "new"])
    page[key] = rng.choice([*NUMBERS[:4], *OTHERS, [], {}, "9.9.9", "0.1.1\nok"])
    if rng.random() < 0.3:
        del page[rng.choice(list(page))]
    text = rng.choice([json.dumps(page), json.dumps([page]), json.dumps(page)])
    members["corral.json"] = text.encode()
    return write_members(members)


KINDS = {
    "flip bits": flip_bits,
    "change bytes": change_bytes,
    "truncate": truncate,
    "splice": splice,
    "schema": change_schema,
    "value": change_value,
    "header": change_header,
    "array": change_array,
    "sparse": change_sparse,
    "graft": graft,
    "members": change_members,
    "archive": change_archive,
    "page": change_page,
}


def read_members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(members):
    """Return an archive with right check sums; a list of pairs may repeat names."""
    pairs = members.items() if isinstance(members, dict) else members
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, member in pairs:
            archive.fp.seek(0, io.SEEK_END)
            archive.NameToInfo.pop(name, None)
            archive.writestr(name, member)
    return buffer.getvalue()


def list_nodes(schema):
    """Return all dicts of a description."""
    found, rest = [], [schema]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            found.append(node)
            rest += node.values()
        elif isinstance(node, list):
            rest += node
    return found


def change_node(schema, rng):
    """Change one node of a description."""
    nodes = list_nodes(schema)
    node, other = rng.choice(nodes), rng.choice(nodes)
    key = rng.choice(list(node)) if node else "content"
    kind = rng.randrange(8)
    if kind == 0:
        node.pop(key, None)
    elif kind == 1:
        node["__module__"], node["__class__"] = rng.choice(CLASSES)
    elif kind == 2:
        node["__loader__"] = rng.choice(LOADERS)
    elif kind == 3:
        node[key] = rng.choice([*NUMBERS, *OTHERS, [], {}, [node.get("file")]])
    elif kind == 4:
        # Not itself, as a description cannot be endless.
        copy = json.loads(json.dumps(other))
        node[key] = copy
    elif kind == 5:
        node["__id__"] = other.get("__id__", 0)
    elif kind == 6 and isinstance(node.get("content"), list) and node["content"]:
        items = node["content"]
        place = rng.randrange(len(items))
        items[place : place + 1] = [items[place]] * rng.choice([0, 2, 50])
    else:
        node[key] = DEEP


def draw_like(value, rng):
    """Return another value, mostly of the same kind."""
    if rng.random() < 0.2:
        return rng.choice([*NUMBERS, *FLOATS, *OTHERS, [], {}, [[1]]])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = [value + 1, value - 1, -value, 2 * value, value // 2]
        return rng.choice([*near, *NUMBERS])
    if isinstance(value, float):
        return rng.choice([*FLOATS, value * 2, -value, value * 1e300])
    return rng.choice([*OTHERS, f"{value}x", str(value)[:-1]])


def change_numbers(array, rng):
    """Return an array with other values, or of another shape or type."""
    kind = rng.randrange(6)
    if kind < 3 and array.size and array.dtype.kind in "biuf":
        flat = array.reshape(-1)
        for _ in range(rng.choice([1, 1, 5])):
            place = rng.randrange(flat.size)
            flat[place] = draw_number(array, rng)
        return array
    if kind == 3:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array[None]
    if kind == 4 and array.ndim:
        return rng.choice([array.T, array.reshape(-1), np.concatenate([array] * 2)])
    if array.dtype.kind in "biuf":
        dtypes = [np.float32, np.int64, np.int32, np.uint8, bool, "U3", "M8[s]"]
        with np.errstate(invalid="ignore"):
            return array.astype(np.int64).astype(rng.choice(dtypes))
    return np.frombuffer(rng.randbytes(array.nbytes), np.uint8)


def draw_number(array, rng):
    """Return a number that the type of an array holds."""
    if array.dtype.kind == "f":
        number = rng.choice([*FLOATS, float(array.max()) + 1, 1e30, -1e30])
        with np.errstate(over="ignore"):
            return array.dtype.type(number)
    if array.dtype.kind == "b":
        return rng.choice([True, False])
    limits = np.iinfo(array.dtype)
    near = [int(array.max()) + 1, int(array.min()) - 1, 0, -1, limits.min, limits.max]
    return min(max(rng.choice(near), limits.min), limits.max)


def mutate(case, contents):
    """Return the damaged file of a case.

    Parameters
    ----------
    case : tuple of (str, str, int)
        The kind of damage, the name of a model, and the seed.
    contents : dict of str to bytes
        The files of all models.
    """
    kind, name, seed = case
    rng = random.Random(f"{kind} {name} {seed}")
    return KINDS[kind](contents[name], rng, list(contents.values()))
