"""What calling a module of `torch.nn` computes, from its class, its configuration and its parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import msgspec

from whygrad.ledger.events import Module

REDUCTIONS = ("mean", "sum", "none")


class Form(msgspec.Struct, frozen=True):
    """A module's call as a call of one operation: after the inputs, parameters by keyword, then constants.

    `parameters` maps keywords to names of the module's parameters. `choices` are settings of which the ledger
    does not say which one it was: the recorded result decides.
    """

    operation: str
    parameters: dict[str, str]
    constants: dict[str, Any]
    choices: tuple[dict[str, Any], ...] = ({},)
    in_place: bool = False


class UnrecordedError(Exception):
    """Something that the module computes with is not in the ledger; the text says what."""


class Config:
    """A module's `extra_repr`, read as arguments (`1, 4, kernel_size=(3, 3)`), and its training flag."""

    def __init__(self, text: str, training: bool) -> None:
        self.training = training
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        self.positional = [ast.literal_eval(argument) for argument in call.args]
        self.named = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}

    def take(self, *names: str) -> dict[str, Any]:
        return {name: self.named[name] for name in names if name in self.named}


def form(module: Module, training: bool) -> Form | None:
    """How to compute the module's call; None where its class is not known or its configuration not readable.

    Raises UnrecordedError where it computes with more than its parameters.
    """
    known = FORMS.get(module.kind)
    if known is None:
        return None
    try:
        config = Config(module.config, training)
    except (SyntaxError, ValueError):
        return None
    found = known(config)
    if config.named.get("ceil_mode"):
        return None
    named = dict(module.parameters)
    parameters = {keyword: name for keyword, name in found.parameters.items() if name in named}
    in_place = bool(config.named.get("inplace", False))
    return Form(found.operation, parameters, found.constants, found.choices, in_place)


FormOf = Callable[[Config], Form]
WEIGHTS = {"weight": "weight", "bias": "bias"}


def _plain(operation: str, *options: str) -> FormOf:
    """An operation on the inputs alone, with those options of its configuration."""
    return lambda config: Form(operation, {}, config.take(*options))


def _loss(operation: str, *options: str, reductions: tuple[str, ...] = REDUCTIONS) -> FormOf:
    """A loss. Its `extra_repr` does not say its reduction: then the recorded result does."""

    def of(config: Config) -> Form:
        said = config.take("reduction", *options)
        choices = ({},) if "reduction" in said else tuple({"reduction": reduction} for reduction in reductions)
        return Form(operation, {}, said, choices)

    return of


def _weighted(operation: str, *options: str) -> FormOf:
    """An operation with the module's weight, and its bias if it has one."""
    return lambda config: Form(operation, WEIGHTS, config.take(*options))


def _layer_norm(config: Config) -> Form:
    return Form("layer_norm", WEIGHTS, {"normalized_shape": config.positional[0], **config.take("eps")})


def _rms_norm(config: Config) -> Form:
    return Form("rms_norm", {"weight": "weight"}, {"normalized_shape": config.positional[0], **config.take("eps")})


def _group_norm(config: Config) -> Form:
    return Form("group_norm", WEIGHTS, {"num_groups": config.positional[0], **config.take("eps")})


def _batch_norm(config: Config) -> Form:
    if not config.training and config.named.get("track_running_stats") is not False:
        raise UnrecordedError("its running statistics")
    constants = {"training": True, "running_mean": None, "running_var": None, **config.take("eps")}
    return Form("batch_norm", WEIGHTS, constants)


def _dropout(config: Config) -> Form:
    return Form("dropout", {}, {"training": config.training, **config.take("p")})


def _unflatten(config: Config) -> Form:
    said = config.named
    return Form("unflatten", {}, {"dim": said["dim"], "sizes": said["unflattened_size"]})


FORMS: dict[str, FormOf] = {
    "Linear": _weighted("linear"),
    "Bilinear": _weighted("bilinear"),
    "Conv1d": _weighted("conv1d", "stride", "padding", "dilation", "groups"),
    "Conv2d": _weighted("conv2d", "stride", "padding", "dilation", "groups"),
    "Embedding": _weighted("embedding", "padding_idx", "max_norm", "scale_grad_by_freq"),
    "LayerNorm": _layer_norm,
    "RMSNorm": _rms_norm,
    "GroupNorm": _group_norm,
    "BatchNorm1d": _batch_norm,
    "BatchNorm2d": _batch_norm,
    "Identity": _plain("identity"),
    "Flatten": _plain("flatten", "start_dim", "end_dim"),
    "Unflatten": _unflatten,
    "MaxPool1d": _plain("max_pool1d", "kernel_size", "stride", "padding", "dilation"),
    "MaxPool2d": _plain("max_pool2d", "kernel_size", "stride", "padding", "dilation"),
    "AvgPool1d": _plain("avg_pool1d", "kernel_size", "stride", "padding"),
    "AvgPool2d": _plain("avg_pool2d", "kernel_size", "stride", "padding"),
    "AdaptiveAvgPool1d": _plain("adaptive_avg_pool1d", "output_size"),
    "AdaptiveAvgPool2d": _plain("adaptive_avg_pool2d", "output_size"),
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"), _dropout),
    "ReLU": _plain("relu"),
    "ReLU6": _plain("relu6"),
    "LeakyReLU": _plain("leaky_relu", "negative_slope"),
    "PReLU": _weighted("prelu"),
    "ELU": _plain("elu", "alpha"),
    "CELU": _plain("celu", "alpha"),
    "SELU": _plain("selu"),
    "GELU": _plain("gelu", "approximate"),
    "SiLU": _plain("silu"),
    "Mish": _plain("mish"),
    "Sigmoid": _plain("sigmoid"),
    "LogSigmoid": _plain("logsigmoid"),
    "Tanh": _plain("tanh"),
    "Tanhshrink": _plain("tanhshrink"),
    "Softplus": _plain("softplus", "beta", "threshold"),
    "Softsign": _plain("softsign"),
    "Softshrink": lambda config: Form("softshrink", {}, {"lambd": config.positional[0]}),
    "Hardtanh": _plain("hardtanh", "min_val", "max_val"),
    "Hardsigmoid": _plain("hardsigmoid"),
    "Hardswish": _plain("hardswish"),
    "Softmax": _plain("softmax", "dim"),
    "Softmin": _plain("softmin", "dim"),
    "LogSoftmax": _plain("log_softmax", "dim"),
    "MSELoss": _loss("mse_loss"),
    "L1Loss": _loss("l1_loss"),
    "SmoothL1Loss": _loss("smooth_l1_loss", "beta"),
    "HuberLoss": _loss("huber_loss", "delta"),
    "CrossEntropyLoss": _loss("cross_entropy", "ignore_index", "label_smoothing"),
    "NLLLoss": _loss("nll_loss", "ignore_index"),
    "BCELoss": _loss("binary_cross_entropy"),
    "BCEWithLogitsLoss": _loss("binary_cross_entropy_with_logits"),
    "KLDivLoss": _loss("kl_div", "log_target", reductions=(*REDUCTIONS, "batchmean")),
    "PoissonNLLLoss": _loss("poisson_nll_loss", "log_input", "full", "eps"),
    "GaussianNLLLoss": _loss("gaussian_nll_loss", "full", "eps"),
    "SoftMarginLoss": _loss("soft_margin_loss"),
}
"""Classes of `torch.nn` whose call is one operation."""
