"""Batches from a DataLoader, a validation per epoch in eval mode without gradients, a scheduler per epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total, count = 0.0, 0
    for inputs, targets in loader:
        optimizer.zero_grad(set_to_none=False)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        total += loss.item() * inputs.size(0)
        count += inputs.size(0)
    return total / count


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    total, right, count = 0.0, 0, 0
    for inputs, targets in loader:
        outputs = model(inputs)
        total += criterion(outputs, targets).item() * inputs.size(0)
        right += (outputs.argmax(1) == targets).sum().item()
        count += inputs.size(0)
    return total / count, right / count


def main():
    torch.manual_seed(1)
    x = torch.randn(120, 6)
    y = (x[:, 0] * x[:, 1] > 0).long()
    train, held_out = random_split(TensorDataset(x, y), [96, 24])
    train_loader = DataLoader(train, batch_size=16, shuffle=True)
    held_out_loader = DataLoader(held_out, batch_size=24)
    model = nn.Sequential(
        nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    history = []
    for epoch in range(8):
        train_loss = train_epoch(model, train_loader, criterion, optimizer)
        val_loss, accuracy = validate(model, held_out_loader, criterion)
        scheduler.step()
        history.append(train_loss)
        print(f"{epoch}: train {train_loss:.3f} val {val_loss:.3f} acc {accuracy:.2f}")
    assert history[-1] < 0.7 * history[0]


if __name__ == "__main__":
    main()
