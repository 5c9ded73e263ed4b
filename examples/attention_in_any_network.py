"""Put an attention into a network, train a step, look at its masks, and take it out again.

    python examples/attention_in_any_network.py [NAME]

NAME is an attention; `gpca` unless given. The network is timm's resnet10t, the images are random.
"""

import sys

import timm
import torch
from torch.nn.functional import cross_entropy

from gpca import insert_attention


def main(name: str = "gpca") -> None:
    torch.manual_seed(0)
    network = timm.create_model("resnet10t", num_classes=10)
    plain = network.state_dict()
    images, labels = torch.rand(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])

    inserted = insert_attention(network, name, after="layer?.?.bn2", example=images[:1])
    print(inserted)
    print(f"{inserted.multiply_adds():,} multiply-adds more for one image")
    missing, unexpected = network.load_state_dict(plain, strict=False)  # a checkpoint of the plain network
    print(f"{len(missing)} keys are missing, all of attentions; {len(unexpected)} are unexpected")

    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    cross_entropy(network(images), labels).backward()
    optimizer.step()

    network(images)
    for place, mask in inserted.masks.items():
        print(f"{place}: mask {tuple(mask.shape)}, {mask.min():.3f} to {mask.max():.3f}")
    for place, places in inserted.maps.items():
        print(f"{place}: map {tuple(places.shape)}, {places.min():.3f} to {places.max():.3f}")
    inserted.remove()
    print("keys as before:", list(network.state_dict()) == list(plain))


if __name__ == "__main__":
    main(*sys.argv[1:2])
