// DNN: training of a LeNet by steepest descent: two convolutions of 5 x 5 with pooling, two dense
// layers, softmax. Each number is made by one thread, in an order that does not change, so that the
// host computes the same bits. The host checkpoints. Host: `dnn.rs`.
#include "nearpm_gpm.cuh"
#include "same_bits.cuh"

// Side of a convolution's window.
#define WINDOW 5u

// A batch of images: bytes become numbers from 0 to 1.
extern "C" __global__ void dnn_images(const unsigned char *images, gpm_u32 first, gpm_u32 images_of_set, gpm_u32 pixels,
                                      gpm_u32 batch, float *out) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * pixels) return;
    gpm_u32 image = (first + i / pixels) % images_of_set;
    out[i] = (float)images[(gpm_u64)image * pixels + i % pixels] / 255.0f;
}

// Planes of `side` x `side` to `maps` planes of `side` - 4.
extern "C" __global__ void dnn_convolve(const float *in, const float *weights, const float *bias, float *out, gpm_u32 batch,
                                        gpm_u32 channels, gpm_u32 side, gpm_u32 maps) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x, small = side - WINDOW + 1, plane = small * small;
    if (i >= batch * maps * plane) return;
    gpm_u32 x = i % small, y = i / small % small, map = i / plane % maps, image = i / plane / maps;
    float sum = bias[map];
    for (gpm_u32 c = 0; c < channels; c++)
        for (gpm_u32 v = 0; v < WINDOW; v++)
            for (gpm_u32 u = 0; u < WINDOW; u++)
                sum += weights[((map * channels + c) * WINDOW + v) * WINDOW + u] *
                       in[((image * channels + c) * side + y + v) * side + x + u];
    out[i] = sum;
}

// The highest of 2 x 2.
extern "C" __global__ void dnn_pool(const float *in, float *out, gpm_u32 planes, gpm_u32 side) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x, half = side / 2;
    if (i >= planes * half * half) return;
    gpm_u32 x = i % half, y = i / half % half, plane = i / half / half;
    const float *at = in + (plane * side + 2 * y) * side + 2 * x;
    float top = at[0] > at[1] ? at[0] : at[1], bottom = at[side] > at[side + 1] ? at[side] : at[side + 1];
    out[i] = top > bottom ? top : bottom;
}

// A dense layer; `rectified` drops what is negative.
extern "C" __global__ void dnn_dense(const float *in, const float *weights, const float *bias, float *out, gpm_u32 batch,
                                     gpm_u32 inputs, gpm_u32 outputs, gpm_u32 rectified) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * outputs) return;
    gpm_u32 output = i % outputs, image = i / outputs;
    float sum = bias[output];
    for (gpm_u32 k = 0; k < inputs; k++) sum += weights[output * inputs + k] * in[image * inputs + k];
    out[i] = rectified && sum < 0.0f ? 0.0f : sum;
}

// Softmax and what a class's score adds to the loss, over the batch.
extern "C" __global__ void dnn_loss(const float *scores, const unsigned char *labels, gpm_u32 first, gpm_u32 images_of_set,
                                    gpm_u32 batch, gpm_u32 classes, float *slopes) {
    gpm_u32 image = blockIdx.x * blockDim.x + threadIdx.x;
    if (image >= batch) return;
    const float *mine = scores + image * classes;
    float highest = mine[0], sum = 0.0f;
    for (gpm_u32 c = 1; c < classes; c++) highest = mine[c] > highest ? mine[c] : highest;
    for (gpm_u32 c = 0; c < classes; c++) sum += power_of_e(mine[c] - highest);
    gpm_u32 label = labels[(first + image) % images_of_set];
    for (gpm_u32 c = 0; c < classes; c++)
        slopes[image * classes + c] = (power_of_e(mine[c] - highest) / sum - (c == label ? 1.0f : 0.0f)) / (float)batch;
}

// Slopes of a dense layer's input; nothing flows back to what a rectified layer had dropped (`in`
// is what it gave).
extern "C" __global__ void dnn_dense_back(const float *slopes, const float *weights, const float *in, float *back, gpm_u32 batch,
                                          gpm_u32 inputs, gpm_u32 outputs, gpm_u32 rectified) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * inputs) return;
    gpm_u32 input = i % inputs, image = i / inputs;
    float sum = 0.0f;
    for (gpm_u32 k = 0; k < outputs; k++) sum += weights[k * inputs + input] * slopes[image * outputs + k];
    back[i] = rectified && in[i] <= 0.0f ? 0.0f : sum;
}

// Goes down the slope of a dense layer's weights and biases.
extern "C" __global__ void dnn_dense_learn(const float *slopes, const float *in, float *weights, float *bias, gpm_u32 batch,
                                           gpm_u32 inputs, gpm_u32 outputs, float rate) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (inputs + 1) * outputs) return;
    gpm_u32 input = i % (inputs + 1), output = i / (inputs + 1);
    float sum = 0.0f;
    for (gpm_u32 image = 0; image < batch; image++)
        sum += slopes[image * outputs + output] * (input < inputs ? in[image * inputs + input] : 1.0f);
    if (input < inputs)
        weights[output * inputs + input] -= rate * sum;
    else
        bias[output] -= rate * sum;
}

// Slopes of what was pooled: that of the pool goes to the first of its highest.
extern "C" __global__ void dnn_pool_back(const float *slopes, const float *in, float *back, gpm_u32 planes, gpm_u32 side) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x, half = side / 2;
    if (i >= planes * half * half) return;
    gpm_u32 x = i % half, y = i / half % half, plane = i / half / half;
    gpm_u32 at = (plane * side + 2 * y) * side + 2 * x, best = at;
    if (in[at + 1] > in[best]) best = at + 1;
    if (in[at + side] > in[best]) best = at + side;
    if (in[at + side + 1] > in[best]) best = at + side + 1;
    back[at] = best == at ? slopes[i] : 0.0f;
    back[at + 1] = best == at + 1 ? slopes[i] : 0.0f;
    back[at + side] = best == at + side ? slopes[i] : 0.0f;
    back[at + side + 1] = best == at + side + 1 ? slopes[i] : 0.0f;
}

// Slopes of a convolution's input.
extern "C" __global__ void dnn_convolve_back(const float *slopes, const float *weights, float *back, gpm_u32 batch,
                                             gpm_u32 channels, gpm_u32 side, gpm_u32 maps) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x, small = side - WINDOW + 1;
    if (i >= batch * channels * side * side) return;
    gpm_u32 x = i % side, y = i / side % side, channel = i / side / side % channels, image = i / side / side / channels;
    float sum = 0.0f;
    for (gpm_u32 map = 0; map < maps; map++)
        for (gpm_u32 v = 0; v < WINDOW; v++)
            for (gpm_u32 u = 0; u < WINDOW; u++)
                if (y >= v && y - v < small && x >= u && x - u < small)
                    sum += weights[((map * channels + channel) * WINDOW + v) * WINDOW + u] *
                           slopes[((image * maps + map) * small + y - v) * small + x - u];
    back[i] = sum;
}

// Goes down the slope of a convolution's weights and biases: a thread each, over all images and
// places.
extern "C" __global__ void dnn_convolve_learn(const float *slopes, const float *in, float *weights, float *bias, gpm_u32 batch,
                                              gpm_u32 channels, gpm_u32 side, gpm_u32 maps, float rate) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x, small = side - WINDOW + 1, window = WINDOW * WINDOW;
    gpm_u32 taps = channels * window + 1;
    if (i >= maps * taps) return;
    gpm_u32 tap = i % taps, map = i / taps, channel = tap / window, v = tap % window / WINDOW, u = tap % WINDOW;
    float sum = 0.0f;
    for (gpm_u32 image = 0; image < batch; image++)
        for (gpm_u32 y = 0; y < small; y++)
            for (gpm_u32 x = 0; x < small; x++) {
                float slope = slopes[((image * maps + map) * small + y) * small + x];
                sum += tap + 1 < taps ? slope * in[((image * channels + channel) * side + y + v) * side + x + u] : slope;
            }
    if (tap + 1 < taps)
        weights[map * channels * window + tap] -= rate * sum;
    else
        bias[map] -= rate * sum;
}
