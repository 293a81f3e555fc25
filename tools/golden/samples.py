# Runs one op on one sample and records inputs, outputs, view relations and gradients for a fixed cotangent.
from record import Unsupported, cotangent, encode
from torch_setup import torch


def leaves(x):
    """The tensors inside nested tuples and lists, left to right."""
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for y in x for t in leaves(y)]
    return []


def view_of(out, inputs):
    """Position of the input whose storage out shares, or None."""
    if out.numel() == 0 or len(out.storage()) == 0:
        return None
    for i, t in enumerate(inputs):
        if len(t.storage()) and t.storage().data_ptr() == out.storage().data_ptr() and t.dtype == out.dtype:
            return i
    return None


def output_record(group, out, inputs):
    record = group.tensor(out, whole_storage=False)
    source = view_of(out, inputs)
    if source is not None:
        record |= {"view_of": source, "strides": list(out.stride()), "offset": out.storage_offset()}
    return record


def gradients(outputs, inputs, make_cotangent=cotangent):
    """d(sum of output * cotangent)/d(input), or None where an input has no gradient; empty if nothing is differentiable."""
    wanted = [t for t in inputs if t.requires_grad]
    reached = [(i, o) for i, o in enumerate(outputs) if o.requires_grad]
    if not wanted or not reached:
        return []
    found = torch.autograd.grad(
        [o for _, o in reached], wanted, [make_cotangent(o, i) for i, o in reached], allow_unused=True
    )
    by_input = dict(zip(map(id, wanted), found))
    return [by_input.get(id(t)) for t in inputs]


def written(group, inputs, before):
    """{position: new values} of the inputs that the call changed (running statistics); puts the old values back."""
    changed = {}
    for i, (t, old) in enumerate(zip(inputs, before)):
        if not torch.equal(t.detach().nan_to_num(), old.nan_to_num()):
            changed[i] = group.tensor(t, whole_storage=False)
            t.detach().copy_(old)
    return changed


def record_sample(group, name, variant, call, args, kwargs, limit, kind=""):
    """Adds a line for call(*args, **kwargs); raises Unsupported if it does not fit the format or the size limit."""
    inputs = []
    coded_args = [encode(a, inputs) for a in args]
    coded_kwargs = {k: encode(v, inputs) for k, v in kwargs.items() if k not in ("device", "layout", "pin_memory")}
    if sum(len(t.storage()) for t in inputs) > limit:
        raise Unsupported("too large")
    before = [t.detach().clone() for t in inputs]
    out = call(*args, **kwargs)
    outputs = leaves(out)
    if isinstance(out, (bool, int, float)):
        outputs = [torch.tensor(out)]
    if sum(len(t.storage()) for t in inputs) + sum(t.numel() for t in outputs) > limit:
        raise Unsupported("too large")
    grads = gradients(outputs, inputs)
    line = {"op": name, "args": coded_args}
    if variant:
        line["variant"] = variant
    if coded_kwargs:
        line["kwargs"] = coded_kwargs
    if kind:
        line["kind"] = kind
    line["after"] = written(group, inputs, before)
    if not line["after"]:
        del line["after"]
    line["inputs"] = [group.tensor(t) for t in inputs]
    line["outputs"] = [output_record(group, o, inputs) for o in outputs]
    if grads:
        line["grads"] = [None if g is None else group.tensor(g, whole_storage=False) for g in grads]
    group.add(line)

