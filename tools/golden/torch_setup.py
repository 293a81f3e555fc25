# Imports PyTorch 1.13 and its OpInfo database the same way on every machine: one thread, fixed seed, no test-only packages.
import os
import site
import sys
import types
import unittest
import warnings

# Some samples are listed in the order of a set of strings.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})

# Debian's torch was built against Debian's numpy; a newer numpy in the user's own folder would shadow it.
sys.path[:] = [p for p in sys.path if p != site.getusersitepackages()]

# torch.testing._internal imports expecttest, which Debian does not package; only these two names are touched.
_stub = types.ModuleType("expecttest")
_stub.ACCEPT = False
_stub.TestCase = type("TestCase", (unittest.TestCase,), {"longMessage": True})
sys.modules.setdefault("expecttest", _stub)

warnings.simplefilter("ignore")
import torch  # noqa: E402

torch.set_num_threads(1)


def _zeroed(make):
    return lambda *args, **kwargs: make(*args, **kwargs).zero_()


# Some samples are made of uninitialised memory, which differs from run to run.
torch.empty, torch.empty_strided = _zeroed(torch.empty), _zeroed(torch.empty_strided)
torch.Tensor.new_empty = _zeroed(torch.Tensor.new_empty)

SEED = 20130


def reset_seed(salt=0):
    """Every op starts from the same state, so that dropping or adding one op leaves the data of the others alone."""
    torch.manual_seed(SEED + salt)
    import numpy
    import random

    numpy.random.seed(SEED + salt)
    random.seed(SEED + salt)


def op_database():
    import torch.testing._internal.common_methods_invocations as methods

    return methods.op_db
