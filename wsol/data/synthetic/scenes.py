"""The places that birds are painted in: an out-of-focus background and, sharp, what the bird sits on.

A scene knows where the bird is but not of what species.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from wsol.data.synthetic.anatomy import Anatomy
from wsol.data.synthetic.brush import (
    Colour,
    Layer,
    Points,
    band,
    ellipse,
    lit,
    mix,
    noise,
    open_curve,
    over,
    soften,
)
from wsol.data.synthetic.families import Scene
from wsol.data.synthetic.flora import BARK, GRASS, LEAVES, accent, blossom, bough, pick, stone, tuft, twig

# Dark, middle and light colour of blurred foliage: summer, spring, autumn, dusk, winter, blossom.
FOLIAGE: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((38, 66, 34), (88, 126, 58), (178, 198, 118)),
    ((66, 98, 44), (132, 168, 72), (222, 230, 158)),
    ((92, 62, 34), (168, 118, 52), (234, 196, 118)),
    ((34, 52, 62), (72, 98, 104), (158, 178, 176)),
    ((112, 118, 128), (168, 174, 182), (230, 232, 236)),
    ((112, 84, 92), (188, 150, 158), (246, 220, 224)),
)
SKIES: tuple[tuple[Colour, Colour], ...] = (  # zenith and horizon
    ((84, 142, 206), (206, 226, 238)),
    ((128, 164, 198), (232, 232, 224)),
    ((96, 116, 168), (250, 206, 164)),
    ((150, 160, 172), (216, 220, 222)),
)


def paint_scene(rng: np.random.Generator, scene: Scene, bird: Anatomy, height: int, width: int) -> np.ndarray:
    """(H, W, 3) float32 picture, 0 to 255, of the place around a bird that is still to be painted."""
    return _SCENES[scene](rng, bird, height, width)


def _blend(low: Colour, high: Colour, weight: np.ndarray) -> np.ndarray:
    """Two colours mixed by a field of weights."""
    a, b = np.array(low, np.float32), np.array(high, np.float32)
    return a + (b - a) * weight[..., None].astype(np.float32)


def _foliage(rng: np.random.Generator, h: int, w: int) -> np.ndarray:
    """Leaves far out of focus, with round lights."""
    dark, middle, light = FOLIAGE[rng.choice(len(FOLIAGE), p=(0.34, 0.2, 0.16, 0.1, 0.1, 0.1))]
    long = max(h, w)
    field = noise(rng, h, w, (long / 2.2, long / 2.2), 3)
    picture = _blend(dark, middle, np.clip(0.55 + 0.4 * field, 0, 1))
    picture += _blend((0, 0, 0), light, np.clip(0.35 * field - 0.25, 0, 0.45))
    lights = np.zeros((h, w, 3), np.uint8)
    for _ in range(rng.integers(10, 28)):
        colour = accent(rng) if rng.random() < 0.28 else light
        at = (int(rng.uniform(0, w)), int(rng.uniform(0, h)))
        cv2.circle(lights, at, int(long * rng.uniform(0.015, 0.07)), lit(colour, 0.55), -1)
    glow = soften(lights, long * 0.008).astype(np.float32)
    return 255 - (255 - np.minimum(picture, 250)) * (1 - glow / 255 * 0.55)


def _sky(rng: np.random.Generator, h: int, w: int) -> np.ndarray:
    zenith, horizon = SKIES[rng.integers(len(SKIES))]
    fall = np.linspace(0, 1, h, dtype=np.float32)[:, None] ** 1.2
    picture = _blend(zenith, horizon, fall)
    clouds = noise(rng, h, w, (w / 1.6, h / 3.5), 4)
    cover = np.clip(0.55 * clouds - rng.uniform(-0.2, 0.5), 0, 0.85)
    shade = mix((255, 252, 246), horizon, 0.25)
    return picture + (np.array(shade, np.float32) - picture) * cover[..., None]


def _hills(rng: np.random.Generator, picture: np.ndarray, horizon: float) -> None:
    """Distant woods and hills in front of the sky, paler the farther."""
    h, w = picture.shape[:2]
    haze = picture[int(np.clip(horizon, 1, h)) - 1].mean(0)
    green = np.array(pick(rng, GRASS), np.float32) * 0.75
    rows = np.arange(h, dtype=np.float32)[:, None]
    for far in (0.75, 0.5):
        ridge = noise(rng, 1, w, (w / 3, 1), 3)[0] * 0.03 * h + horizon - (0.03 + 0.1 * far) * h
        weight = np.clip((rows - ridge) / (0.02 * h), 0, 1)[..., None]
        picture += (green + (haze - green) * far - picture) * weight


def _ground(
    rng: np.random.Generator, picture: np.ndarray, horizon: float, far: Colour, near: Colour, rough: float
) -> None:
    """A plane from the horizon to the lower edge, its texture finer with distance."""
    h, w = picture.shape[:2]
    top = int(np.clip(horizon, 0, h - 2))
    depth = np.linspace(0, 1, h - top, dtype=np.float32)[:, None]
    plane = _blend(far, near, depth)
    grain = noise(rng, h - top, w, (w / 4, max(2.0, h / 24)), 3) * (0.35 + 0.65 * depth)
    picture[top:] = plane * (1 + rough * grain)[..., None]


def _horizon(rng: np.random.Generator, bird: Anatomy, h: int) -> float:
    """Above the bird's feet, or anywhere low when it flies."""
    if bird.pose.action == "fly":
        return h * rng.uniform(0.62, 0.95)
    feet = bird.waterline if bird.pose.action == "swim" else float(bird.feet[:, 1].min())
    return min(h * rng.uniform(0.1, 0.55), feet - 0.06 * h)


def _shadow(picture: np.ndarray, bird: Anatomy, strength: float = 0.5) -> np.ndarray:
    """A soft shadow on the ground under the feet."""
    h, w = picture.shape[:2]
    if bird.pose.action != "stand":
        return picture
    at, unit = bird.feet.mean(0), bird.world.scale
    layer = Layer(h, w)
    area = layer.area(ellipse(at + 0.05 * unit, 0.55 * unit, 0.09 * unit))
    dark = soften(cv2.resize(area, (w, h), interpolation=cv2.INTER_AREA), 0.04 * unit)
    return picture * (1 - strength * dark[..., None].astype(np.float32) / 255)


def _through(rng: np.random.Generator, at: Points, slope: float, w: int) -> Points:
    """A wavy line across the picture that passes a point with a slope."""
    x = np.array([-0.1 * w, 0.3 * at[0], at[0], at[0] + 0.5 * (w - at[0]), 1.1 * w])
    wave = rng.normal(0, 0.02 * w, 5) * (1, 1, 0, 1, 1)
    return open_curve(np.stack([x, at[1] + slope * (x - at[0]) + wave], axis=1))


def _branch(rng: np.random.Generator, bird: Anatomy, h: int, w: int) -> np.ndarray:
    picture = _foliage(rng, h, w) if rng.random() < 0.78 else _sky(rng, h, w)
    long, bark = max(h, w), pick(rng, BARK)
    behind = Layer(h, w)
    for _ in range(rng.integers(1, 5)):
        at = rng.uniform(0, 1, 2) * (w, h)
        if rng.random() < 0.4:
            line = _through(rng, at, rng.uniform(-1.2, 1.2), w)
            bough(rng, behind, line, long * rng.uniform(0.01, 0.04), lit(bark, 0.9))
        else:
            twig(rng, behind, at, rng.uniform(0, 6.28), long * rng.uniform(0.15, 0.35), bark)
    paint, alpha = behind.finish()
    blur = long * rng.uniform(0.006, 0.022)
    picture = over(picture, (soften(paint, blur), soften(alpha, blur)[..., None]))

    front = Layer(h, w)
    thick = max(bird.world.scale * rng.uniform(0.11, 0.22), 0.02 * long)
    feet = bird.feet[np.argsort(bird.feet[:, 0])]
    tilt = float((feet[1, 1] - feet[0, 1]) / max(feet[1, 0] - feet[0, 0], 1e-6))
    line = _through(rng, np.add(feet.mean(0), (0, 0.42 * thick)), tilt + rng.normal(0, 0.05), w)
    for _ in range(rng.integers(1, 5)):
        start = line[rng.integers(len(line))]
        angle = rng.choice([-1, 1]) * rng.uniform(0.4, 1.3) + rng.choice([0, np.pi])
        twig(rng, front, start, angle, long * rng.uniform(0.14, 0.34), bark)
    bough(rng, front, line, thick, bark)
    return over(picture, front.finish())


def _trunk(rng: np.random.Generator, bird: Anatomy, h: int, w: int) -> np.ndarray:
    """An upright stem whose edge the feet hold."""
    picture = _foliage(rng, h, w)
    bark, layer = pick(rng, BARK), Layer(h, w)
    grip = bird.feet.mean(0) + np.array([np.sign(bird.world.matrix[0, 0]), 0]) * 0.03 * bird.world.scale
    along = bird.body([(1.0, 0.0)])[0] - bird.body.origin
    along = along / -along[1] * 1.2 * h
    thick = bird.world.scale * rng.uniform(0.5, 1.1)
    out = np.array([-along[1], along[0]]) / np.linalg.norm(along) * np.sign(bird.world.matrix[0, 0])
    line = np.linspace(grip + out * thick / 2 - along, grip + out * thick / 2 + along, 24)
    line += noise(rng, 24, 2, (2, 5))[:, :2] * 0.01 * bird.world.scale
    layer.fill(band(line, np.full(24, thick)), bark)
    for share in np.linspace(-0.46, 0.46, 9):
        i = int(rng.integers(0, 8))
        piece = line[i : i + 14] + out * thick * (share + rng.normal(0, 0.02))
        layer.stroke(piece, lit(bark, rng.uniform(0.62, 1.2)), 0.05 * thick)
    edge = layer.area(band(line + out * 0.36 * thick, np.full(24, 0.4 * thick)), soft=0.1 * thick)
    layer.stain(np.minimum(edge, layer.rgba[..., 3]), lit(bark, 0.5), 0.7)
    for _ in range(rng.integers(1, 4)):
        at = line[rng.integers(len(line))] + out * thick * 0.4
        twig(rng, layer, at, rng.uniform(-2.6, -0.5), h * rng.uniform(0.15, 0.3), lit(bark, 0.8))
    return over(picture, layer.finish())


def _meadow(rng: np.random.Generator, bird: Anatomy, h: int, w: int) -> np.ndarray:
    horizon = _horizon(rng, bird, h)
    picture = _sky(rng, h, w)
    _hills(rng, picture, horizon)
    green, long = pick(rng, GRASS), max(h, w)
    _ground(rng, picture, horizon, lit(mix(green, (220, 220, 170), 0.35), 1.1), lit(green, 0.8), 0.12)
    picture = soften(picture, 0.008 * long)
    if rng.random() < 0.3:
        picture = over(picture, _fence(rng, horizon, h, w))
    layer = Layer(h, w)
    for y in np.sort(rng.uniform(horizon + 0.04 * h, 1.05 * h, 46)):
        near = (y - horizon) / (h - horizon)
        at = np.array([rng.uniform(0, w), y])
        size = long * (0.02 + 0.12 * near)
        if rng.random() < 0.75:
            tuft(rng, layer, at, size, mix(green, pick(rng, GRASS), 0.4))
        elif rng.random() < 0.7:
            stem = at - (rng.normal(0, 0.15) * size, size * rng.uniform(0.5, 0.9))
            layer.stroke(np.stack([at, stem]), lit(green, 0.7), 0.03 * size)
            blossom(rng, layer, stem, size * rng.uniform(0.12, 0.2))
        else:
            stone(rng, layer, at, size * rng.uniform(0.25, 0.5))
    return _shadow(over(picture, layer.finish()), bird)


def _fence(rng: np.random.Generator, horizon: float, h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
    """Posts and a wire some way behind the bird, a little out of focus."""
    layer, wood = Layer(h, w), pick(rng, BARK)
    tall, foot = h * rng.uniform(0.16, 0.3), horizon + h * rng.uniform(0.04, 0.12)
    for x in np.arange(rng.uniform(0, 0.3), 1.1, rng.uniform(0.25, 0.4)) * w:
        post = np.array([(x, foot), (x + rng.normal(0, 0.01) * w, foot - tall)])
        layer.fill(band(post, np.full(2, 0.025 * w)), wood)
    for level in (0.4, 0.8):
        layer.stroke(
            np.array([(0, foot - level * tall), (w, foot - level * tall)]), lit(wood, 0.8), 0.006 * w
        )
    paint, alpha = layer.finish()
    return soften(paint, 0.007 * w), soften(alpha, 0.007 * w)[..., None]


def _far_bank(rng: np.random.Generator, picture: np.ndarray, horizon: float) -> None:
    """Trees beyond the water, more often than not, out of focus."""
    h, w = picture.shape[:2]
    if rng.random() < 0.35:
        return
    foot = max(2, int(horizon) + 1)
    ridge = horizon - h * rng.uniform(0.05, 0.25) + noise(rng, 1, w, (w / 4, 1), 3)[0] * 0.035 * h
    rows = np.arange(foot, dtype=np.float32)[:, None]
    weight = np.clip((rows - ridge) / (0.03 * h), 0, 1)[..., None]
    bank, haze = _foliage(rng, foot, w), picture[foot - 1].mean(0)
    picture[:foot] += (bank * 0.7 + haze * 0.3 - picture[:foot]) * weight


def _shore(rng: np.random.Generator, bird: Anatomy, h: int, w: int) -> np.ndarray:
    horizon = _horizon(rng, bird, h)
    feet = float(bird.feet[:, 1].min())
    picture = _sky(rng, h, w)
    blue = mix((70, 112, 138), (112, 140, 146), rng.random())
    _far_bank(rng, picture, horizon)
    _ground(rng, picture, horizon, lit(blue, 1.2), blue, 0.08)
    sand = mix((206, 186, 148), (168, 156, 140), rng.random())
    edge = rng.uniform(horizon, max(horizon + 1, feet - 0.03 * h))
    foam = picture[: int(edge) + 1].copy()
    _ground(rng, picture, edge, lit(sand, 0.86), sand, 0.06)
    picture[: len(foam)] = foam
    picture[int(edge) : int(edge) + max(1, h // 90)] = (236, 238, 236)
    picture = soften(picture, 0.006 * max(h, w))
    layer = Layer(h, w)
    for y in np.sort(rng.uniform(edge, 1.03 * h, rng.integers(8, 30))):
        size = max(h, w) * (0.008 + 0.04 * (y - edge) / (h - edge + 1)) * rng.uniform(0.5, 1.3)
        stone(rng, layer, np.array([rng.uniform(0, w), y]), size)
    for _ in range(rng.integers(0, 4)):
        at = np.array([rng.uniform(0, w), rng.uniform(edge, h)])
        tuft(rng, layer, at, h * rng.uniform(0.08, 0.2), pick(rng, GRASS))
    return _shadow(over(picture, layer.finish()), bird)


def _water(rng: np.random.Generator, bird: Anatomy, h: int, w: int) -> np.ndarray:
    horizon = _horizon(rng, bird, h)
    picture = _sky(rng, h, w)
    r, g, b = picture[: max(1, int(horizon))].mean((0, 1)).tolist()
    tone = mix((r, g, b), (52, 92, 104), rng.uniform(0.35, 0.75))
    _far_bank(rng, picture, horizon)
    _ground(rng, picture, horizon, lit(tone, 1.2), lit(tone, 0.82), 0.10)
    picture = soften(picture, 0.006 * max(h, w))
    layer = Layer(h, w)
    for _ in range(rng.integers(0, 9)):  # reeds and lily pads
        at = np.array([rng.uniform(0, w), rng.uniform(horizon + 0.05 * h, h)])
        near = (at[1] - horizon) / (h - horizon)
        if rng.random() < 0.5:
            pad = w * (0.02 + 0.06 * near)
            layer.fill(ellipse(at, pad, 0.34 * pad), pick(rng, LEAVES[:3]))
            if rng.random() < 0.5:
                blossom(rng, layer, at - (0, 0.2 * pad), 0.3 * pad)
        else:
            tuft(rng, layer, at, h * (0.1 + 0.28 * near), pick(rng, GRASS))
    if bird.pose.action in ("swim", "wade"):
        _ripples(rng, layer, bird, tone)
    return over(picture, layer.finish())


def _ripples(rng: np.random.Generator, layer: Layer, bird: Anatomy, tone: Colour) -> None:
    unit = bird.world.scale
    middle = bird.body.origin[0] if bird.pose.action == "swim" else bird.feet[:, 0].mean()
    reach = 0.7 if bird.pose.action == "swim" else 0.22
    for ring in range(3):
        rx = unit * (reach + 0.2 * ring) * rng.uniform(0.95, 1.1)
        ring_line = ellipse((middle, bird.waterline), rx, 0.10 * rx + 0.02 * unit * ring)
        layer.stroke(ring_line, lit(tone, 1.35 - 0.08 * ring), 0.012 * unit)


def _open_sky(rng: np.random.Generator, bird: Anatomy, h: int, w: int) -> np.ndarray:
    picture = _sky(rng, h, w)
    if rng.random() < 0.45:
        _hills(rng, picture, h * rng.uniform(0.85, 1.1))
    layer, long = Layer(h, w), max(h, w)
    for _ in range(rng.integers(0, 4)):  # far birds, too small to recognise
        at, size = rng.uniform(0.05, 0.95, 2) * (w, 0.7 * h), long * rng.uniform(0.015, 0.04)
        arch = [
            (-1, rng.uniform(-0.5, 0.2)),
            (-0.45, -0.35),
            (0, 0),
            (0.45, -0.35),
            (1, rng.uniform(-0.5, 0.2)),
        ]
        layer.stroke(open_curve(at + size * np.array(arch)), (88, 92, 104), 0.12 * size)
    if rng.random() < 0.5:
        corner = np.array([rng.choice([0, w]), rng.uniform(0.6, 1.1) * h], dtype=float)
        for _ in range(4):
            angle = rng.uniform(-0.9, 0.3) if corner[0] == 0 else np.pi - rng.uniform(-0.9, 0.3)
            twig(rng, layer, corner, angle, long * rng.uniform(0.2, 0.45), pick(rng, BARK))
    paint, alpha = layer.finish()
    return over(picture, (soften(paint, 0.006 * long), soften(alpha, 0.006 * long)[..., None]))


_SCENES: dict[Scene, Callable[[np.random.Generator, Anatomy, int, int], np.ndarray]] = {
    "branch": _branch,
    "trunk": _trunk,
    "meadow": _meadow,
    "shore": _shore,
    "water": _water,
    "sky": _open_sky,
}
