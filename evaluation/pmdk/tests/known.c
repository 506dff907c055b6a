/*
 * A program that executes known numbers of what is counted: for each operation 3 fences, 2 lines
 * written back, 2 lines of streaming stores in 10 of them, and 1 locked instruction upon a
 * write-back. Around the marks there is more of each.
 */
#include <immintrin.h>
#include <stdio.h>

#include "common.h"

#define LINE 64

static _Alignas(LINE) char memory[4 * LINE];

__attribute__((target("clwb"))) static void write_back_new(void *line)
{
    _mm_clwb(line);
}

static void write_back(void *line)
{
    if (__builtin_cpu_supports("clwb"))
        write_back_new(line);
    else
        _mm_clflush(line);
}

static void operation(void)
{
    for (int i = 0; i < 8; i++)
        _mm_stream_si64((long long *)memory + i, i);
    _mm_sfence();
    for (int i = 0; i < 2; i++)
        _mm_stream_si128((__m128i *)(memory + 2 * LINE) + i, _mm_set1_epi8(1));
    _mm_sfence();
    write_back(memory);
    write_back(memory + LINE);
    __atomic_fetch_add((int *)(memory + 3 * LINE), 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add((int *)(memory + 3 * LINE), 1, __ATOMIC_SEQ_CST);
    _mm_mfence();
}

static void work(void *context)
{
    const struct options *options = context;
    for (uint64_t i = 0; i < options->ops; i++)
        operation();
}

int main(int argc, char **argv)
{
    struct options options = options_read(argc, argv);
    work(&options);
    bench_run(&options, work, (void *[]){&options});
    work(&options);
    puts("known");
    return 0;
}
