"""Fine-tuning: a frozen backbone whose BatchNorm stays in eval mode while the new head trains."""
import torch
import torch.nn as nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        )
        self.classifier = nn.Linear(32, 10)

    def forward(self, x):
        return self.classifier(self.features(x))


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False
    module.eval()


torch.manual_seed(0)
model = Backbone()
freeze(model)
model.classifier = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))

images = torch.randn(48, 1, 8, 8)
labels = torch.arange(48) % 2
images[labels == 1, :, :4] += 1.5

trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(trainable, lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
statistics = model.features[1].running_mean.clone()
losses = []
for epoch in range(10):
    model.train()
    model.features.eval()
    for batch in torch.randperm(48).split(16):
        optimizer.zero_grad()
        loss = criterion(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
assert torch.equal(statistics, model.features[1].running_mean)
assert losses[-1] < 0.5 * losses[0]
