# Twenty steps of each optimizer under many option sets on one small problem, and the curves of the learning rate schedules.
import json
import os

from record import Group, cotangent_values
from torch_setup import torch

STEPS = 20

SETS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.05, "nesterov": True}),
    ("SGD", {"lr": 0.05, "momentum": 0.7, "dampening": 0.2, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.02, "betas": [0.8, 0.99]}),
    ("Adam", {"lr": 0.02, "eps": 1e-2}),
    ("Adam", {"lr": 0.02, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True}),
    ("Adam", {"lr": 0.02, "betas": [0.5, 0.6], "amsgrad": True, "weight_decay": 0.2}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.02, "betas": [0.9, 0.95], "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.02, "weight_decay": 0.0}),
    ("AdamW", {"lr": 0.05, "amsgrad": True}),
    ("AdamW", {"lr": 0.02, "betas": [0.5, 0.6], "eps": 1e-3, "amsgrad": True, "weight_decay": 0.3}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-4}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.02, "betas": [0.8, 0.9], "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.02, "betas": [0.8, 0.9], "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.05}),
]

SCHEDULES = [
    ("StepLR", {"step_size": 7, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [4, 9, 20], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 6}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 1.0, "total_iters": 8}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 15}),
    ("PolynomialLR", {"total_iters": 12, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 0.02}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 40}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 40, "pct_start": 0.2, "anneal_strategy": "linear", "three_phase": True}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.6, "step_size_up": 4, "step_size_down": 6, "cycle_momentum": False}),
]


def start():
    a = cotangent_values(12, 1).reshape(3, 4).clone().requires_grad_()
    b = cotangent_values(5, 2).clone().requires_grad_()
    return [a, b]


def loss_of(params):
    """sum over both of (i+1)/4 (p - 1/2)^2 + 0.3 p^4, i the position: uneven curvature, nothing but sums and products."""
    total = 0
    for p in params:
        curvature = (torch.arange(p.numel(), dtype=torch.float64) + 1).reshape(p.shape) / 4
        total = total + (curvature * (p - 0.5) ** 2 + 0.3 * p * p * p * p).sum()
    return total


def trajectory(name, options):
    params = start()
    optimizer = getattr(torch.optim, name)(params, **options)
    visited = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(params).backward()
        optimizer.step()
        visited.append(torch.cat([p.detach().flatten() for p in params]))
    return torch.stack(visited)


def curve(name, options, steps=40):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(found) < steps:
            schedule.step()
    return found


def dump(folder, counts):
    group = Group("optimizers")
    group.add({"start": [group.tensor(p, False) for p in start()], "steps": STEPS})
    for name, options in SETS:
        group.add({"optimizer": name, "options": options, "values": group.tensor(trajectory(name, options), False)})
    group.write(folder)
    counts["optimizers"] = len(SETS)
    with open(os.path.join(folder, "schedules.json"), "w") as f:
        rows = [{"schedule": n, "options": o, "base_lr": 0.5, "values": curve(n, o)} for n, o in SCHEDULES]
        f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")
    counts["schedules"] = len(SCHEDULES)
