"""A CNN with BatchNorm and random augmentation in training, plain images in evaluation."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(self.drop(x))


def augment(images):
    if torch.rand(()) < 0.5:
        images = images.flip(-1)
    return images + 0.05 * torch.randn_like(images)


torch.manual_seed(0)
labels = torch.arange(64) % 2
images = 0.3 * torch.randn(64, 1, 8, 8)
images[labels == 0, :, 3:5, :] += 1.0
images[labels == 1, :, :, 3:5] += 1.0

model = ConvNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
losses = []
for epoch in range(6):
    model.train()
    for index in torch.randperm(64).split(16):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(augment(images[index])), labels[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        accuracy = (model(images).argmax(1) == labels).float().mean().item()
    print(epoch, losses[-1], accuracy)
assert losses[-1] < 0.7 * losses[0]
