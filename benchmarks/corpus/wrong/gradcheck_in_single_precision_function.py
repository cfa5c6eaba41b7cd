# rule: gradcheck-in-single-precision
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def check():
    torch.manual_seed(0)
    inputs = torch.rand(6, requires_grad=True)  # <- here
    return torch.autograd.gradcheck(Cube.apply, inputs, raise_exception=False)


print(check())
