"""Windows over images of which a body takes a part, or another one, than an operator of that name does."""

POOLED = "  F: [float32]\ninputs: {x: 'F[N, C, H]', b: 'T[]'}\noutputs: {y: 'F[K, J, H]'}\nshape: {K: N // 2, J: C // 2}\n"
SUMMED = "  F: [float32]\ninputs: {x: 'F[N, C, H]', w: 'F[O, C, 3]', b: 'T[]'}\noutputs: {y: 'F[K, L, H]'}\n"
FEWER = "  F: [float32]\ninputs: {x: 'F[2, C, H]', w: 'F[O, I, 3]', b: 'T[]'}\noutputs: {y: 'F[2, O, H]'}\n"

WINDOWS = {
    "greatest_of_some_images": (POOLED, "y[k, c, i] = max[p:3](pad(x[k, c, i + p - 1], -inf)) + cast(F, b)"),
    "means_of_some_images": (POOLED, "y[k, c, i] = sum[p:3](pad(x[k, c, i + p - 1], 0)) / 3 + cast(F, b)"),
    "filters_of_some_images": (
        SUMMED + "shape: {K: N // 2, L: O}\n",
        "y[k, o, i] = sum[c, p:3](w[o, c, p] * pad(x[k, c, i + p - 1], 0)) + cast(F, b)",
    ),
    "some_filters": (
        SUMMED + "shape: {K: N, L: O // 2}\n",
        "y[n, o, i] = sum[c, p:3](w[o, c, p] * pad(x[n, c, i + p - 1], 0)) + cast(F, b)",
    ),
    "some_channels": (
        SUMMED + "shape: {K: N, L: O}\n",
        "y[n, o, i] = sum[c:C // 2, p:3](w[o, c, p] * pad(x[n, c, i + p - 1], 0)) + cast(F, b)",
    ),
    "some_taps": (
        SUMMED.replace("3]", "4]") + "shape: {K: N, L: O}\n",
        "y[n, o, i] = sum[c, p:3](w[o, c, p] * pad(x[n, c, i + p - 1], 0)) + cast(F, b)",
    ),
    "filters_of_fewer_channels": (
        FEWER + "require: [C >= I]\n",
        "y[n, o, i] = sum[c:I, p:3](w[o, c, p] * pad(x[n, c, i + p - 1], 0)) + cast(F, b)",
    ),
    "groups_of_other_sizes": (
        FEWER + "attributes: {groups: {type: int, default: 2, check: groups > 0}}\n"
        "require: [C == I * groups, H >= O, H % groups == 0]\n",
        "y[n, o, i] = sum[c:I, p:3](w[o, c, p] * pad(x[n, o // (H // groups) * I + c, i + p - 1], 0)) + cast(F, b)",
    ),
}
