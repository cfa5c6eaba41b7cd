"""Self-attention written out, with scaled_dot_product_attention whose dropout follows the module's mode."""
import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = SelfAttention(width, 2, 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 16), *[Block(16) for _ in range(2)], nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x = torch.randn(32, 5, 3)
y = x.mean(dim=1, keepdim=True).expand(-1, 5, -1)
losses = []
for step in range(40):
    model.train()
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 20 == 19:
        model.eval()
        with torch.inference_mode():
            print("eval", F.mse_loss(model(x), y).item())
assert losses[-1] < 0.5 * losses[0]
