"""`torch.utils.data`: datasets, samplers and the loader, on the calling thread."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import dtypes, random
from .errors import not_covered
from .ops.define import TORCH
from .tensor import Tensor, wrap

_MODULE = "torch.utils.data.dataset"


class _Generic:
    def __class_getitem__(cls, item: Any) -> type:
        return cls


class Dataset(_Generic):
    """Samples by index: define `__getitem__` and `__len__`."""

    __module__ = _MODULE

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples one after the other: define `__iter__`."""

    __module__ = _MODULE

    def __iter__(self) -> Any:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset):
    """Rows of tensors of one length."""

    __module__ = _MODULE

    def __init__(self, *tensors: Tensor) -> None:
        if not all(tensors[0].size(0) == t.size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class ConcatDataset(Dataset):
    """Datasets end to end."""

    __module__ = _MODULE

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        k = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[k][index - (self.cumulative_sizes[k - 1] if k else 0)]


class Subset(Dataset):
    """Some of a dataset's samples."""

    __module__ = _MODULE

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[Any], generator: Any = None) -> list[Subset]:
    """Disjoint random parts, of lengths or fractions."""
    n = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
            sizes.append(math.floor(n * fraction))
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != n:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = random.permutation(n, generator or random.default_generator).tolist()
    return [
        Subset(dataset, order[end - size : end])
        for end, size in zip(itertools.accumulate(lengths), lengths, strict=True)
    ]


# --- samplers -----------------------------------------------------------------------------------------------------


class Sampler(_Generic):
    """An order of indices."""

    __module__ = "torch.utils.data.sampler"

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    __module__ = "torch.utils.data.sampler"

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _fresh_seed() -> int:
    """What PyTorch draws for a sampler's own generator: a word below 2**63."""
    g = random.default_generator
    return int(g.long_words(1)[0]) & ((1 << 63) - 1)


class RandomSampler(Sampler):
    """A permutation, drawn from a generator seeded by the default one."""

    __module__ = "torch.utils.data.sampler"

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        if self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        g = self.generator
        if g is None:
            g = random.Generator()
            g.manual_seed(_fresh_seed())
        if self.replacement:
            for _ in range(self.num_samples // 32):
                yield from random.integers((32,), 0, n, g).tolist()
            yield from random.integers((self.num_samples % 32,), 0, n, g).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from random.permutation(n, g).tolist()
            yield from random.permutation(n, g).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order."""

    __module__ = "torch.utils.data.sampler"

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in random.permutation(len(self.indices), self.generator or random.default_generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Refused: it needs multinomial."""

    __module__ = "torch.utils.data.sampler"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        not_covered("WeightedRandomSampler")


class BatchSampler(Sampler):
    """Indices in groups."""

    __module__ = "torch.utils.data.sampler"

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size


# --- loading ------------------------------------------------------------------------------------------------------


def default_collate(batch: Any) -> Any:
    """Samples of one kind stacked into tensors, whatever the nesting."""
    first = batch[0]
    if isinstance(first, Tensor):
        return TORCH["stack"](batch, 0)
    if isinstance(first, np.ndarray):
        return default_collate([TORCH["as_tensor"](b) for b in batch])
    if isinstance(first, np.generic):
        return TORCH["as_tensor"](np.array(batch))
    if isinstance(first, bool):
        return TORCH["tensor"](batch)
    if isinstance(first, float):
        return TORCH["tensor"](batch, dtype=dtypes.float64)
    if isinstance(first, int):
        return TORCH["tensor"](batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {k: default_collate([b[k] for b in batch]) for k in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(s) for s in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(b) != len(first) for b in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(s) for s in zip(*batch, strict=True)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found " + str(type(first))
    )


class DataLoader(_Generic):
    """Batches of a dataset; workers are not started, the numbers are the same."""

    __module__ = "torch.utils.data.dataloader"

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: Any = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if num_workers:
            not_covered("worker processes of DataLoader (num_workers > 0)")
        self.dataset, self.num_workers, self.generator, self.drop_last = dataset, num_workers, generator, drop_last
        self.iterable = isinstance(dataset, IterableDataset)
        if self.iterable and shuffle:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and not self.iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None and not self.iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.sampler, self.batch_sampler = batch_size, sampler, batch_sampler
        self.collate_fn = collate_fn or (
            default_collate if batch_size is not None or batch_sampler is not None else lambda x: x
        )

    def __iter__(self) -> Iterator[Any]:
        g = self.generator or random.default_generator
        g.long_words(1)  # the base seed of the workers, drawn even if there are none
        if self.iterable:
            return self._from_iterable()
        return self._from_indices()

    def _from_indices(self) -> Iterator[Any]:
        if self.batch_sampler is None:
            for i in self.sampler:
                yield self.collate_fn(self.dataset[i])
            return
        for batch in self.batch_sampler:
            if hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__:
                yield self.collate_fn(self.dataset.__getitems__(batch))
            else:
                yield self.collate_fn([self.dataset[i] for i in batch])

    def _from_iterable(self) -> Iterator[Any]:
        stream = iter(self.dataset)
        if self.batch_size is None:
            for x in stream:
                yield self.collate_fn(x)
            return
        while batch := list(itertools.islice(stream, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if self.iterable:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)
        return len(self.sampler) if self.batch_sampler is None else len(self.batch_sampler)


__all__ = ["wrap"]
