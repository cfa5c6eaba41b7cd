"""`torch.mps`: there is none here."""


def is_available() -> bool:
    return False
