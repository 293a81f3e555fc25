#!/usr/bin/env python3
"""Fits the polynomials of core/math_*.h and prints them as hex literals, with the error that each leaves.

Each fit is a weighted minimax (Remez exchange on a dense grid, 60 digits). Coefficients are rounded one at a time,
lowest power first, and the rest are refitted around the rounded ones, so that rounding costs almost nothing.
    tools/fit_math.py [NAME...]          print the named fits, or all
    tools/fit_math.py --check            exit 1 unless every literal printed stands in core/math_*.h
Needs mpmath and a few minutes.
"""

import pathlib
import re
import sys

from mpmath import (asin, atan, cos, erf, erfc, erfinv, exp, expm1, fabs, inf, log, log1p, lu_solve, matrix, mp, mpf, pi,
                    sin, sinh, sqrt, tanh)

mp.dps = 60


def round_to(value, bits):
    """The nearest float (24 bits) or double (53 bits)."""
    if value == 0:
        return mpf(0)
    man, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(man, bits)), exponent - bits)


def hex_literal(value, suffix):
    text = float(value).hex()
    mantissa, exponent = text.split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + exponent + suffix


def chebyshev_grid(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)][::-1]


class Fit:
    """sum of c[k] * basis(x) * variable(x)**k close to target(x), the error times weight(x) minimax on [low, high]."""

    def __init__(self, bits, low, high, degree, target, weight, basis=lambda x: mpf(1), variable=lambda x: x):
        self.bits, self.degree = bits, degree
        self.grid = chebyshev_grid(mpf(low), mpf(high), 30 * (degree + 3))
        self.target = [target(x) * weight(x) for x in self.grid]
        rows = [(weight(x) * basis(x), variable(x)) for x in self.grid]
        self.powers = [[scale * v**k for k in range(degree + 1)] for scale, v in rows]

    def errors(self, coefficients):
        return [t - sum(c * p for c, p in zip(coefficients, row)) for t, row in zip(self.target, self.powers)]

    def remez(self, fixed):
        """The minimax coefficients when the first len(fixed) are given."""
        free = range(len(fixed), self.degree + 1)
        if not free:
            return fixed
        # Where the first free term is negative the error counts with its sign turned: divided by that term this is an
        # ordinary polynomial fit, for which the alternation theorem holds.
        signs = [1 if row[free[0]] > 0 else -1 for row in self.powers]
        size = len(free) + 1
        last = len(self.grid) - 1
        nodes = [round(last * (1 - float(cos(pi * i / (size - 1)))) / 2) for i in range(size)]
        best = (inf, fixed)
        for _ in range(40):
            system = matrix(size, size)
            right = matrix(size, 1)
            for r, i in enumerate(nodes):
                for c, k in enumerate(free):
                    system[r, c] = self.powers[i][k]
                system[r, size - 1] = signs[i] * (-1)**r
                right[r] = self.target[i] - sum(f * p for f, p in zip(fixed, self.powers[i]))
            solution = lu_solve(system, right)
            coefficients = fixed + [solution[c] for c in range(size - 1)]
            errors = self.errors(coefficients)
            best = min(best, (max(fabs(e) for e in errors), coefficients))
            new_nodes = self.exchange([s * e for s, e in zip(signs, errors)], size)
            if new_nodes is None or new_nodes == nodes:
                break
            nodes = new_nodes
        return best[1]

    def exchange(self, errors, size):
        """The largest error of each run of one sign; of too many, the smallest go, and alternation stays."""
        peaks = []
        for i, e in enumerate(errors):
            if peaks and (e > 0) == (errors[peaks[-1]] > 0):
                if fabs(e) > fabs(errors[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > size:
            heights = [fabs(errors[i]) for i in peaks]
            least = heights.index(min(heights))
            if least in (0, len(peaks) - 1):
                peaks.pop(least)
            elif len(peaks) > size + 1:
                neighbour = least - 1 if heights[least - 1] < heights[least + 1] else least
                del peaks[neighbour:neighbour + 2]
            else:
                peaks.pop(0 if heights[0] < heights[-1] else -1)
        return peaks if len(peaks) == size else None

    def rounded(self):
        fixed = []
        while len(fixed) <= self.degree:
            coefficients = self.remez(fixed)
            fixed.append(round_to(coefficients[len(fixed)], self.bits))
        return fixed, max(fabs(e) for e in self.errors(fixed))


def split(value, bits, parts, down):
    """value as a sum of `parts` numbers of the given width, largest first."""
    result = []
    for left in range(parts, 0, -1):
        part = round_to(value, bits)
        if down and left > 1 and part > value:
            part -= mp.ldexp(1, mp.frexp(part)[1] - bits)
        result.append(part)
        value -= part
    return result


def one(_):
    return mpf(1)


# Each entry: what it is for and a function that builds the fit (built only when asked for).
HALF_LN2 = log(2) / 2 * mpf("1.0001")
SQRT_HALF, SQRT_TWO = sqrt(mpf("0.5")), sqrt(mpf(2))
FLOAT, DOUBLE = 24, 53


def log_square_ratio(z):
    """(log((1+s)/(1-s)) - 2s) / s^3 at s = sqrt(z)."""
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) - 2 * s) / s**3


def erfinv_ratio(w):
    x = sqrt(1 - exp(-w))
    return erfinv(x) / x


FITS = {
    # e^r - 1 = r + r^2 Q(r); relative to e^r - 1
    "exp_f": lambda: Fit(FLOAT, -HALF_LN2, HALF_LN2, 4, lambda r: (expm1(r) - r), lambda r: 1 / expm1(r), lambda r: r * r),
    "exp_d": lambda: Fit(DOUBLE, -HALF_LN2, HALF_LN2, 10, lambda r: (expm1(r) - r), lambda r: 1 / expm1(r), lambda r: r * r),
    # 2^r = 1 + r Q(r)
    "exp2_f": lambda: Fit(FLOAT, -0.50001, 0.50001, 5, lambda r: 2**r - 1, one, lambda r: r),
    "exp2_d": lambda: Fit(DOUBLE, -0.50001, 0.50001, 10, lambda r: 2**r - 1, one, lambda r: r),
    # log(1 + f) = f - f^2/2 + f^3 P(f)
    "log_f": lambda: Fit(FLOAT, SQRT_HALF - 1, SQRT_TWO - 1, 7, lambda f: log1p(f) - f + f * f / 2, lambda f: 1 / f, lambda f: f**3),
    # log((1+s)/(1-s)) = 2s + s^3 P(s^2); relative to 2s
    "log_d": lambda: Fit(DOUBLE, 1e-12, ((SQRT_TWO - 1) / (SQRT_TWO + 1))**2, 6, log_square_ratio, lambda z: z / 2),
    # the same for pow: log((1+s)/(1-s)) = 2s + (2/3) s^3 + s^5 P(s^2)
    "log_pow_d": lambda: Fit(DOUBLE, 1e-6, (SQRT_TWO - 1) / (SQRT_TWO + 1), 7,
                             lambda s: log((1 + s) / (1 - s)) - 2 * s - 2 * s**3 / 3, lambda s: 1 / s, lambda s: s**5, lambda s: s * s),
    # sin r = r + r^3 P(r^2) on [-pi/2, pi/2]
    "sin_f": lambda: Fit(FLOAT, 1e-6, 1.5725, 4, lambda r: sin(r) - r, lambda r: 1 / sin(r), lambda r: r**3, lambda r: r * r),
    "sin_d": lambda: Fit(DOUBLE, 1e-6, 1.5709, 8, lambda r: sin(r) - r, lambda r: 1 / sin(r), lambda r: r**3, lambda r: r * r),
    # tanh x = x + x^3 P(x^2) below 0.625
    "tanh_f": lambda: Fit(FLOAT, 1e-6, 0.626, 4, lambda x: tanh(x) - x, lambda x: 1 / tanh(x), lambda x: x**3, lambda x: x * x),
    # sinh x = x + x^3 P(x^2) below 1
    "sinh_d": lambda: Fit(DOUBLE, 1e-6, 1.0, 6, lambda x: sinh(x) - x, lambda x: 1 / sinh(x), lambda x: x**3, lambda x: x * x),
    # asin s = s + s^3 P(s^2), s^2 <= 1/4
    "asin_d": lambda: Fit(DOUBLE, 1e-6, 0.5, 12, lambda s: asin(s) - s, lambda s: 1 / asin(s), lambda s: s**3, lambda s: s * s),
    # atan t = t + t^3 P(t^2), |t| <= tan(pi/8)
    "atan_d": lambda: Fit(DOUBLE, 1e-6, 0.41422, 10, lambda t: atan(t) - t, lambda t: 1 / atan(t), lambda t: t**3, lambda t: t * t),
    # erf x = x + x P(x^2) below 0.9 (float), 1 (double)
    "erf_f": lambda: Fit(FLOAT, 1e-6, 0.921, 6, lambda x: erf(x) - x, lambda x: 1 / erf(x), lambda x: x, lambda x: x * x),
    "erf_d": lambda: Fit(DOUBLE, 1e-6, 1.0, 11, lambda x: erf(x) - x, lambda x: 1 / erf(x), lambda x: x, lambda x: x * x),
    # erf a = 1 - exp(-g(a)) on [0.92, 4]: g with absolute error weighted by erfc
    "erf_tail_f": lambda: Fit(FLOAT, 0.919, 3.95, 8, lambda a: -log(erfc(a)), lambda a: erfc(a)),
    # (1 + 2a) exp(a^2) erfc(a), a polynomial in (a - 4)/(a + 4)
    "erfcx_d": lambda: Fit(DOUBLE, 0, 28, 22, lambda a: (1 + 2 * a) * exp(a * a) * erfc(a),
                           lambda a: 1 / ((1 + 2 * a) * exp(a * a) * erfc(a)), one, lambda a: (a - 4) / (a + 4)),
    # erfinv x = x P(w), w = -log(1 - x^2), to 2^-23 only: a Halley step follows. P in w - 2.5, or in sqrt(w) - 4 from 5 on
    "erfinv_d": lambda: Fit(DOUBLE, 1e-3, 5.001, 9, erfinv_ratio, lambda w: 1 / erfinv_ratio(w), one, lambda w: w - mpf("2.5")),
    "erfinv_tail_d": lambda: Fit(DOUBLE, 2.236, 6.07, 12, lambda v: erfinv_ratio(v * v), lambda v: 1 / erfinv_ratio(v * v), one, lambda v: v - 4),
}

CONSTANTS = {  # how many parts, and whether all but the last are rounded down, so that all are positive
    "log2e": (lambda: 1 / log(2), 2, False), "ln2": (lambda: log(2), 2, False),
    "log10e": (lambda: 1 / log(10), 2, False), "log10_2": (lambda: log(2) / log(10), 2, False),
    "two_thirds": (lambda: mpf(2) / 3, 2, False), "half_pi": (lambda: pi / 2, 2, False),
    "pi": (lambda: +pi, 3, True), "one_over_pi": (lambda: 1 / pi, 1, False),
    "two_over_sqrt_pi": (lambda: 2 / sqrt(pi), 1, False), "tan_pi_8": (lambda: sqrt(mpf(2)) - 1, 1, False),
}
FLOAT_PARTS = {"ln2": 2, "log2e": 1}


def literals_of(name):
    """The heading and the literals of a fit or a constant."""
    if name == "one_over_pi_words":  # for the reduction of huge arguments
        with mp.workdps(400):
            bits = int(mp.floor(mp.ldexp(1 / pi, 64 * 19)))
        return name, [f"0x{bits >> 64 * (18 - i) & (1 << 64) - 1:016x}" for i in range(19)]
    if name in CONSTANTS:
        value, parts, down = CONSTANTS[name]
        result = [hex_literal(v, "") for v in split(value(), DOUBLE, parts, down)]
        result += [hex_literal(v, "f") for v in split(value(), FLOAT, FLOAT_PARTS.get(name, 0), down)]
        return name, result
    fit = FITS[name]()
    coefficients, error = fit.rounded()
    suffix = "f" if fit.bits == FLOAT else ""
    return f"{name}: error 2^{float(log(error, 2)):.1f}", [hex_literal(c, suffix) for c in coefficients]


def number(literal):
    """What a literal of C++ is worth, its sign aside: the headers write -n as often as -c."""
    if "p" not in literal:
        return int(literal, 16)
    return abs(float.fromhex(literal.rstrip("f")))


def main(arguments):
    check = arguments[:1] == ["--check"]
    names = arguments[1 if check else 0:] or list(CONSTANTS) + ["one_over_pi_words"] + list(FITS)
    headers = "".join(p.read_text() for p in (pathlib.Path(__file__).parent.parent / "core").glob("math_*.h"))
    known = {number(text) for text in re.findall(r"0x[0-9a-f.]+(?:p[-+]?\d+f?)?", headers)}
    missing = 0
    for name in names:
        heading, literals = literals_of(name)
        print(heading, flush=True)
        for literal in literals:
            lost = check and number(literal) not in known
            missing += lost
            print(f"    {literal}" + ("  is in no header" if lost else ""))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
