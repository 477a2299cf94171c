"""Writes torch_stacks.json: blocks, the transformer, a GPT, their losses and updates as PyTorch computes them.

Not run by the tests; they read the file. To write it anew: `pip install torch==2.13.0`, then
`python tests/reference/make_torch_stacks.py`. attncli is not imported here. Wherever PyTorch has the whole block
(TransformerEncoderLayer, TransformerDecoderLayer), its own output and gradients with these weights are compared before
writing; losses are torch.nn.functional.cross_entropy, updates torch.optim.SGD and torch.optim.Adam.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from make_torch import Numbers, Run, attend, mask_of, plain
from make_torch_blocks import CURVES, gradient_of, linear
from make_torch_latent import bias_of, turned
from stack_cases import listed
from torch import nn
from torch.nn import functional as F

Tensor = torch.Tensor


class Whole(Run):
    """A calculation that knows which of its tensors are only paths, and which modules it was held against."""

    def __init__(self, inputs: dict[str, Tensor], settings: dict[str, Any]) -> None:
        super().__init__(inputs, settings)
        self.paths: set[str] = set()
        self.modules: set[str] = set()

    def fork(self, id: str, x: Tensor, uses: Iterable[str]) -> list[Tensor]:
        """A node for every use of x, so that autograd keeps each path's gradient; x itself where there is one use."""
        steps = list(uses)
        if len(steps) == 1:
            return [x]
        names = [step.rpartition(".")[2] for step in steps]
        marks = [
            step.replace(".", "_") if names.count(name) > 1 else name for step, name in zip(steps, names, strict=True)
        ]
        self.paths |= {f"{id}_{mark}" for mark in marks}
        return [self.keep(f"{id}_{mark}", x * 1) for mark in marks]


class Part:
    """A part of a calculation (self., layer2.ffn.): its weights without the prefix, its steps with it."""

    def __init__(self, run: Whole, prefix: str, settings: dict[str, Any]) -> None:
        self.run, self.prefix, self.settings, self.checks = run, prefix, settings, run.checks
        self.given = {name.removeprefix(prefix): x for name, x in run.given.items() if name.startswith(prefix)}

    def keep(self, id: str, value: Tensor) -> Tensor:
        return self.run.keep(self.prefix + id, value)


# --- sublayers --------------------------------------------------------------------------------------------------------


def heads_of(part: Part, q_source: Tensor, k_source: Tensor, v_source: Tensor) -> Tensor:
    settings = part.settings
    count = settings.get("heads", 1)
    parts = []
    for name, source in (("Q", q_source), ("K", k_source), ("V", v_source)):
        own = count if name == "Q" else settings.get("kv_heads", count)
        whole = linear(part, source, name, f"W_{name}", f"b_{name}")
        parts.append(part.keep(f"{name}_heads", whole.view(len(whole), own, -1).transpose(0, 1)))
    if settings.get("rotary"):
        before = part.given["K_past"].shape[-2] if "K_past" in part.given else 0
        for place, name in enumerate("QK"):
            parts[place] = part.keep(f"{name}_rotated", turned(parts[place], settings, before))
    if "alibi" in settings:
        bias = bias_of(settings["alibi"], count, len(q_source), len(k_source), 0)
        part.settings = {**settings, "mask": bias.tolist()}
    out = attend(part, *parts)
    concat = part.keep("concat", out.transpose(0, 1).reshape(out.shape[1], -1))
    return linear(part, concat, "output", "W_O", "b_O")


def forward_of(part: Part, sources: list[Tensor]) -> Tensor:
    if part.settings.get("activation") == "swiglu":
        swish = part.keep("swish", F.silu(part.keep("gate", sources[0] @ part.given["W_gate"])))
        activated = part.keep("activated", swish * linear(part, sources[1], "hidden", "W_1", "b_1"))
    else:
        curve = CURVES[part.settings.get("activation", "relu")]
        activated = part.keep("activated", curve(linear(part, sources[0], "hidden", "W_1", "b_1")))
    return linear(part, activated, "Y", "W_2", "b_2")


def norm_uses(settings: dict[str, Any], prefix: str) -> list[str]:
    """The steps of a norm that take what is normed."""
    names = ["normalised", "mean_square"] if settings.get("normalisation") == "rms" else ["centred", "mean"]
    return [prefix + name for name in names]


def norm_of(run: Whole, sources: list[Tensor], prefix: str, settings: dict[str, Any]) -> Tensor:
    part, eps = Part(run, prefix, settings), settings.get("eps", 1e-5)
    if settings.get("normalisation") == "rms":
        square = part.keep("mean_square", (sources[1] ** 2).mean(-1, keepdim=True))
        normalised = sources[0] / part.keep("rms", torch.sqrt(square + eps))
    else:
        centred = part.keep("centred", sources[0] - part.keep("mean", sources[1].mean(-1, keepdim=True)))
        uses = run.fork(f"{prefix}centred", centred, [f"{prefix}normalised", f"{prefix}variance"])
        variance = part.keep("variance", (uses[1] ** 2).mean(-1, keepdim=True))
        normalised = uses[0] / part.keep("std", torch.sqrt(variance + eps))
    y = part.keep("normalised", normalised)
    y = y * part.given["gamma"] if "gamma" in part.given else y * 1
    return part.keep("Y", y + part.given["beta"] if "beta" in part.given else y * 1)


def sublayer(
    run: Whole, id: str, x: Tensor, prefix: str, name: str, number: int, settings: dict[str, Any], memory: Any = None
) -> tuple[str, Tensor]:
    """LN(x + f(x)), or x + f(LN(x)): the id and the values of the result."""
    part, norm = Part(run, f"{prefix}{name}.", settings), f"{prefix}norm{number}."
    here = f"{prefix}{name}."
    if name == "ffn":
        uses = ["gate", "hidden"] if settings.get("activation") == "swiglu" else ["hidden"]
    else:
        uses = ["Q"] if memory else ["Q", "K", "V"]
    uses = [here + use for use in uses]
    none = settings.get("normalisation") == "none"
    pre = settings.get("norm") == "pre" and not none
    if pre:
        *sources, straight = run.fork(id, x, [*norm_uses(settings, norm), f"{here}residual"])
        sources = run.fork(f"{norm}Y", norm_of(run, sources, norm, settings), uses)
    else:
        *sources, straight = run.fork(id, x, [*uses, f"{here}residual"])
    through = forward_of(part, sources) if name == "ffn" else heads_of(part, *sources, *(memory or ()))
    added = part.keep("residual", straight + through)
    if pre or none:
        return f"{here}residual", added
    normed = norm_of(run, run.fork(f"{here}residual", added, norm_uses(settings, norm)), norm, settings)
    return f"{norm}Y", normed


# --- blocks -----------------------------------------------------------------------------------------------------------

MASKS = ("mask", "keep", "hide")
CROSS = {f"cross_{name}": name for name in MASKS}


def across(settings: dict[str, Any]) -> dict[str, Any]:
    """What the attention to another sequence is told: its own masks, and nothing about before and after."""
    left_out = (*MASKS, "causal", "window", "alibi", "rotary")
    own = {CROSS[name]: value for name, value in settings.items() if name in CROSS}
    return {name: value for name, value in settings.items() if name not in left_out} | own


def encoder(run: Whole, id: str, x: Tensor, settings: dict[str, Any], prefix: str = "") -> tuple[str, Tensor]:
    before = x
    id, x = sublayer(run, id, x, prefix, "self", 1, settings)
    if any(name.startswith(f"{prefix}ffn.") for name in run.given):
        id, x = sublayer(run, id, x, prefix, "ffn", 2, settings)
        run.checks.append(lambda: agrees_with_layer(run, prefix, settings, before, x))
    return id, x


def decoder(
    run: Whole, id: str, x: Tensor, memory: list[Tensor], settings: dict[str, Any], prefix: str = ""
) -> tuple[str, Tensor]:
    before, own = x, {**settings, "causal": True}
    id, x = sublayer(run, id, x, prefix, "self", 1, own)
    id, x = sublayer(run, id, x, prefix, "cross", 2, across(settings), memory)
    id, x = sublayer(run, id, x, prefix, "ffn", 3, own)
    run.checks.append(lambda: agrees_with_layer(run, prefix, own, before, x, memory))
    return id, x


def agrees_with_layer(
    run: Whole, prefix: str, settings: dict[str, Any], x: Tensor, out: Tensor, memory: list[Tensor] | None = None
) -> None:
    """torch.nn.TransformerEncoderLayer or DecoderLayer with these weights, where it can have them."""
    given = Part(run, prefix, settings).given
    width, count = x.shape[1], settings.get("heads", 1)
    parts = ["self", "cross"] if memory is not None else ["self"]
    square = all(given[f"{part}.W_{name}"].shape == (width, width) for part in parts for name in "QKVO")
    plain_kind = settings.get("activation", "relu") in ("relu", "gelu")
    usual = settings.get("normalisation", "layer") == "layer"
    strange = set(settings) & {"scale", "softcap", "rotary", "alibi", "window"}
    cached = any(name.endswith("_past") for name in given)
    if not (square and plain_kind and usual) or strange or cached or width % count:
        return
    kind = nn.TransformerEncoderLayer if memory is None else nn.TransformerDecoderLayer
    layer = kind(
        width,
        count,
        given["ffn.W_1"].shape[1],
        dropout=0.0,
        activation=settings.get("activation", "relu"),
        layer_norm_eps=settings.get("eps", 1e-5),
        batch_first=True,
        norm_first=settings.get("norm") == "pre",
        dtype=torch.float64,
    )
    pairs = weights_into(layer, given, parts, width)
    # Memory is there twice, on its way to the keys and to the values: its gradient is the sum of both.
    sources = [x, *(memory or ())]
    inputs = [tensor.detach().clone().requires_grad_() for tensor in sources[:2]]
    if memory is None:
        theirs = layer(inputs[0][None], src_mask=added(settings, len(x), len(x)))[0]
    else:
        masks = added(settings, len(x), len(x)), added(across(settings), len(x), len(memory[0]))
        theirs = layer(inputs[0][None], inputs[1][None], tgt_mask=masks[0], memory_mask=masks[1])[0]
    torch.testing.assert_close(theirs, out, rtol=1e-11, atol=1e-13)
    upstream = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape) ** 3 + 0.2
    ours = torch.autograd.grad(out, [*sources, *(mine for mine, _, _ in pairs)], upstream, retain_graph=True)
    wanted = list(layer.parameters())
    found = torch.autograd.grad(theirs, [*inputs, *wanted], upstream)
    by_parameter = dict(zip(map(id, wanted), found[len(inputs) :], strict=True))
    into = [ours[0]] if memory is None else [ours[0], ours[1] + ours[2]]
    for mine, other in zip(into, found[: len(inputs)], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)
    for (_, parameter, cut), mine in zip(pairs, ours[len(sources) :], strict=True):
        torch.testing.assert_close(cut(by_parameter[id(parameter)]), mine, rtol=1e-10, atol=1e-12)
    run.modules.add(f"torch.nn.{kind.__name__}")


def added(settings: dict[str, Any], n: int, m: int) -> Tensor | None:
    """The mask as numbers that are added."""
    return mask_of(settings, n, m, 0)


def weights_into(layer: Any, given: dict[str, Tensor], parts: list[str], width: int) -> list[Any]:
    """Put the weights into PyTorch's layer: (our tensor, its parameter, how its gradient is read) for each given one."""
    pairs: list[Any] = []

    def put(name: str, parameter: Tensor, rows: slice | None = None) -> None:
        def cut(values: Tensor) -> Tensor:
            values = values if rows is None else values[rows]
            return values.T if values.ndim == 2 else values[None]

        with torch.no_grad():
            target = parameter if rows is None else parameter[rows]
            if name in given:
                target.copy_(given[name].T if target.ndim == 2 else given[name][0])
            else:
                target.fill_(1.0 if name.endswith("gamma") else 0.0)
        if name in given:
            pairs.append((given[name], parameter, cut))

    modules = {"self": layer.self_attn, "cross": getattr(layer, "multihead_attn", None)}
    for part in parts:
        module = modules[part]
        for place, name in enumerate("QKV"):
            rows = slice(place * width, (place + 1) * width)
            put(f"{part}.W_{name}", module.in_proj_weight, rows)
            put(f"{part}.b_{name}", module.in_proj_bias, rows)
        put(f"{part}.W_O", module.out_proj.weight)
        put(f"{part}.b_O", module.out_proj.bias)
    for number, linear_layer in ((1, layer.linear1), (2, layer.linear2)):
        put(f"ffn.W_{number}", linear_layer.weight)
        put(f"ffn.b_{number}", linear_layer.bias)
    for number in range(1, len(parts) + 2):
        put(f"norm{number}.gamma", getattr(layer, f"norm{number}").weight)
        put(f"norm{number}.beta", getattr(layer, f"norm{number}").bias)
    return pairs


def encoder_block(run: Whole) -> tuple[str, Tensor]:
    return encoder(run, "X", run.given["X"], run.settings)


def decoder_block(run: Whole) -> tuple[str, Tensor]:
    memory = run.fork("memory", run.given["memory"], ["cross.K", "cross.V"])
    return decoder(run, "X", run.given["X"], memory, run.settings)


# --- stacks -----------------------------------------------------------------------------------------------------------


def code_of(settings: dict[str, Any], rows: int, width: int, before: int = 0) -> Tensor:
    """Sinusoidal positions, as section 3.5 of the paper writes them."""
    p, i = torch.arange(rows, dtype=torch.float64)[:, None], torch.arange(0, width, 2, dtype=torch.float64)
    theta = (p + settings.get("start", 0) + before) / settings.get("base", 10000.0) ** (i / width)
    code = torch.zeros(rows, width, dtype=torch.float64)
    code[:, 0::2] = theta.sin()
    code[:, 1::2] = theta.cos()[:, : width // 2]
    return code


def positioned(run: Whole, id: str, x: Tensor, prefix: str) -> tuple[str, Tensor]:
    if run.settings.get("positions", "sinusoidal") == "none":
        return id, x
    return f"{prefix}positioned", run.keep(f"{prefix}positioned", x + code_of(run.settings, *x.shape))


def last_norm(run: Whole, id: str, x: Tensor, prefix: str) -> tuple[str, Tensor]:
    if run.settings.get("norm") != "pre" or run.settings.get("normalisation") == "none":
        return id, x
    return f"{prefix}Y", norm_of(run, run.fork(id, x, norm_uses(run.settings, prefix)), prefix, run.settings)


def transformer(run: Whole) -> tuple[str, Tensor]:
    settings, layers = run.settings, run.settings.get("layers", 1)
    of_source = {name: value for name, value in settings.items() if name not in (*MASKS, *CROSS)}
    # One row is padding, and holds for the source's own tokens too; several say what the target's tokens may see.
    of_source |= {CROSS[name]: value for name, value in settings.items() if name in CROSS and len(value) == 1}
    id, x = positioned(run, "X", run.given["X"], "encoder.")
    for layer in range(1, layers + 1):
        id, x = encoder(run, id, x, of_source, f"encoder.layer{layer}.")
    id, memory = last_norm(run, id, x, "encoder.norm.")
    uses = [f"decoder.layer{layer}.cross.{name}" for layer in range(1, layers + 1) for name in "KV"]
    paths = run.fork(id, memory, uses)
    id, y = positioned(run, "Y", run.given["Y"], "decoder.")
    for layer in range(1, layers + 1):
        pair = paths[2 * layer - 2 : 2 * layer]
        id, y = decoder(run, id, y, pair, settings, f"decoder.layer{layer}.")
    id, y = last_norm(run, id, y, "decoder.norm.")
    if "W_out" not in run.given:
        return id, y
    return "logits", linear(run, y, "logits", "W_out", "b_out")


def gpt(run: Whole) -> tuple[str, Tensor]:
    given, settings = run.given, run.settings
    tied = settings.get("tied", False)
    layers = settings.get("layers", 0)
    *again, table = run.fork("E", given["E"], ["logits", "X"] if tied else ["X"])
    id, x = "X", run.keep("X", F.embedding(given["T"], table))
    kind = settings.get("positions", "none")
    if kind != "none":
        before = next((past.shape[-2] for name, past in given.items() if name.endswith("K_past")), 0)
        if kind == "learned":
            code = run.keep("X_P", F.embedding(torch.arange(before, before + len(x)), given["P"]))
        else:
            code = code_of(settings, *x.shape, before)
        id, x = "positioned", run.keep("positioned", x + code)
    own = {**settings, "causal": True}
    for layer in range(1, layers + 1):
        id, x = encoder(run, id, x, own, f"layer{layer}.")
    if layers:
        id, x = last_norm(run, id, x, "final.")
    else:
        whole, paths = Part(run, "", own), run.fork(id, x, ["Q", "K", "V"])
        if "W_O" in given:
            x = heads_of(whole, *paths)
        else:
            parts = [run.keep(name, path @ given[f"W_{name}"]) for name, path in zip("QKV", paths, strict=True)]
            x = attend(whole, *parts)
    if not tied:
        return "logits", linear(run, x, "logits", "W_out", "b_out")
    logits = x @ again[0].T
    return "logits", run.keep("logits", logits + given["b_out"] if "b_out" in given else logits)


MODELS = {"encoder_block": encoder_block, "decoder_block": decoder_block, "transformer": transformer, "gpt": gpt}


# --- losses and updates -----------------------------------------------------------------------------------------------


def cross_entropy(run: Whole, logits: Tensor, text: str, targets: Tensor) -> Tensor:
    """PyTorch's own loss, with what lies between; its value and the targets that count."""
    reduction = "sum" if text.endswith("sum)") else "mean"
    loss = F.cross_entropy(logits, targets, ignore_index=-1, reduction=reduction)
    p = torch.softmax(logits, -1)
    counted = targets >= 0
    picked = p[counted].gather(1, targets[counted][:, None])
    count = int(counted.sum())
    run.tensors |= {"loss.P": p.detach(), "loss.picked": picked.detach(), "loss.surprise": -picked.detach().log()}
    if reduction == "mean" and count > 1:
        rows = F.one_hot(targets.clamp(min=0), logits.shape[1])
        run.tensors["loss.error"] = ((p - rows) * counted[:, None]).detach()
    return loss


def loss_of(run: Whole, out: Tensor, gradient: dict[str, Any]) -> Tensor:
    if "upstream" in gradient:
        return (out * gradient["upstream"]).sum()
    if "terms" in gradient:
        return sum(factor * out[tuple(i - 1 for i in index)] for factor, index in gradient["terms"])
    if gradient["loss"].startswith("mse"):
        return F.mse_loss(out, gradient["target"])
    if "target" in gradient:
        return cross_entropy(run, out, gradient["loss"], gradient["target"])
    tokens = run.given["T"]
    return cross_entropy(run, out, gradient["loss"], torch.cat([tokens[1:], torch.tensor([-1])]))


def updates(run: Whole, past: dict[str, Tensor]) -> dict[str, Tensor]:
    """W_new for every parameter, and what Adam remembers, from torch.optim."""
    settings, found = run.settings, {}
    if "eta" not in settings:
        return found
    eta = settings["eta"]
    betas = settings.get("beta1", 0.9), settings.get("beta2", 0.999)
    t = settings.get("t", 1)
    for name, tensor in run.given.items():
        if not tensor.is_floating_point():
            continue
        parameter = tensor.detach().clone().requires_grad_()
        parameter.grad = tensor.grad.clone()
        if settings.get("optimizer", "sgd") == "sgd":
            torch.optim.SGD([parameter], lr=eta).step()
        else:
            adam = torch.optim.Adam([parameter], lr=eta, betas=betas, eps=settings.get("adam_eps", 1e-8))
            nothing = torch.zeros_like(tensor).detach()
            adam.state[parameter] = {
                "step": torch.tensor(float(t - 1)),
                "exp_avg": past.get(f"{name}_m_past", nothing).clone(),
                "exp_avg_sq": past.get(f"{name}_v_past", nothing).clone(),
            }
            adam.step()
            for kind, key, beta in (("m", "exp_avg", betas[0]), ("v", "exp_avg_sq", betas[1])):
                found[f"{name}_{kind}"] = adam.state[parameter][key]
                found[f"{name}_{kind}_hat"] = found[f"{name}_{kind}"] / (1 - beta**t)
        found[f"{name}_new"] = parameter
    return found


def gradient_id(id: str) -> str:
    prefix, dot, name = id.rpartition(".")
    return f"{prefix}{dot}G_{name}"


def result(run: Whole, out: Tensor, gradient: dict[str, Any], past: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every step and every gradient, by id."""
    loss = loss_of(run, out, gradient)
    loss.backward(retain_graph=True)
    found = {id: tensor for id, tensor in run.tensors.items() if id not in run.given and id not in run.paths}
    if "upstream" not in gradient:
        found["L"] = loss.reshape(1, 1)
    grads = {gradient_id(id): t.grad.clone() for id, t in run.tensors.items() if t.requires_grad and t.grad is not None}
    return found | grads | updates(run, past)


# --- the file ---------------------------------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    """15 digits: a thousand times finer than what is compared, and a shorter file."""
    if isinstance(value, float):
        return float(f"{value:.15g}")
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return value


def asked(r: Numbers, number: int, id: str, out: Tensor, classes: Any) -> dict[str, Any]:
    if classes is None:
        return gradient_of(r, number, id, out) if "." not in id else {"upstream": r.normal(*out.shape)}
    targets, reduction = classes
    if targets is None:
        return {"loss": f"cross_entropy({id}, T{reduction})"}
    return {"loss": f"cross_entropy({id}, goal{reduction})", "target": torch.tensor(targets)}


def cases() -> list[dict[str, Any]]:
    r = Numbers(20250404)
    out = []
    for number, (model, name, inputs, settings, classes) in enumerate(listed(r)):
        past = {key: inputs.pop(key) for key in list(inputs) if key.endswith(("_m_past", "_v_past"))}
        run = Whole(inputs, dict(settings))
        id, output = MODELS[model](run)
        gradient = asked(r, number, id, output, classes)
        steps = result(run, output, gradient, past)
        for check in run.checks:
            check()
        gradient.pop("terms", None)
        case = {"name": f"{model}: {name}", "model": model, "inputs": inputs | past, "settings": settings, "gradient": gradient}  # fmt: skip
        if run.modules:
            case["modules"] = sorted(run.modules)
        out.append({**plain(case), "steps": rounded(plain(steps))})
    return out


def main() -> None:
    found = cases()
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, allow_nan=False, separators=(",", ":")) for case in found)
    text = f'{{"source": "PyTorch {torch.__version__}, autograd, float64", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("torch_stacks.json").write_text(text, encoding="utf-8")
    print(len(found), "cases,", sum("modules" in case for case in found), "held against torch.nn's own layers")


if __name__ == "__main__":
    main()
