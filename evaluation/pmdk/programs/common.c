#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

/* The wall's clock, read closest to what is timed, and the processor time of all threads. */
struct moment {
    struct timespec wall, processor;
};

static struct moment begun;
/* Of all pairs of marks, in nanoseconds. */
static uint64_t on_wall, on_processors;

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most)
        fail("--%s takes a number from %llu to %llu, not \"%s\"", name, (unsigned long long)least,
             (unsigned long long)most, text);
    return value;
}

enum option_name { POOL, POOL_MIB, VARIANT, STEPS, OPS, THREADS, BATCH, ADDS, BYTES, SEED, COUNTED };

static const struct option LONG_OPTIONS[] = {
    {"pool", required_argument, NULL, POOL},       {"pool-mib", required_argument, NULL, POOL_MIB},
    {"variant", required_argument, NULL, VARIANT}, {"steps", required_argument, NULL, STEPS},
    {"ops", required_argument, NULL, OPS},         {"threads", required_argument, NULL, THREADS},
    {"batch", required_argument, NULL, BATCH},     {"adds", required_argument, NULL, ADDS},
    {"bytes", required_argument, NULL, BYTES},     {"seed", required_argument, NULL, SEED},
    {"counted", no_argument, NULL, COUNTED},       {NULL, 0, NULL, 0},
};

struct options options_read(int argc, char **argv)
{
    struct options options = {
        .pool_bytes = (size_t)256 << 20, .variant = "", .ops = 1000, .threads = 1, .batch = 1, .adds = 1, .bytes = 8, .seed = 1,
    };
    int name, index;
    while ((name = getopt_long(argc, argv, "", LONG_OPTIONS, &index)) != -1) {
        const char *text = name == '?' ? "" : LONG_OPTIONS[index].name;
        switch (name) {
        case POOL: options.pool = optarg; break;
        case POOL_MIB: options.pool_bytes = (size_t)number(text, optarg, 8, 1 << 20) << 20; break;
        case VARIANT: options.variant = optarg; break;
        case STEPS: options.steps = optarg; break;
        case OPS: options.ops = number(text, optarg, 1, UINT32_MAX); break;
        case THREADS: options.threads = (unsigned)number(text, optarg, 1, 64); break;
        case BATCH: options.batch = (unsigned)number(text, optarg, 1, 4096); break;
        case ADDS: options.adds = (unsigned)number(text, optarg, 0, 16); break;
        case BYTES: options.bytes = number(text, optarg, 8, 1 << 24); break;
        case SEED: options.seed = number(text, optarg, 0, UINT64_MAX); break;
        case COUNTED: options.counted = true; break;
        default: exit(EXIT_FAILURE);
        }
    }
    if (optind != argc)
        fail("\"%s\" is no option", argv[optind]);
    if (options.counted && options.threads != 1)
        fail("--counted follows one thread");
    return options;
}

/* The tracer follows from here, instruction by instruction; before and behind the marks the process
 * runs freely. */
void bench_begin(const struct options *options)
{
    if (options->counted) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            exit(EXIT_NOT_TRACEABLE);
        raise(SIGSTOP);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun.processor);
    clock_gettime(CLOCK_MONOTONIC, &begun.wall);
}

static uint64_t between(const struct timespec *from, const struct timespec *to)
{
    return (uint64_t)(to->tv_sec - from->tv_sec) * 1000000000u + (uint64_t)to->tv_nsec - (uint64_t)from->tv_nsec;
}

void bench_end(const struct options *options)
{
    struct moment ended;
    clock_gettime(CLOCK_MONOTONIC, &ended.wall);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended.processor);
    on_wall += between(&begun.wall, &ended.wall);
    on_processors += between(&begun.processor, &ended.processor);
    if (options->counted)
        raise(SIGSTOP);
}

void bench_reset(void)
{
    on_wall = on_processors = 0;
}

uint64_t bench_nanoseconds(void)
{
    return on_wall;
}

uint64_t bench_processor_nanoseconds(void)
{
    return on_processors;
}

/* Threads wait for the start without sleeping: to wake a sleeper takes as long as thousands of
 * operations. */
struct start {
    atomic_uint waiting;
    atomic_bool go;
};

struct thread {
    pthread_t handle;
    struct start *start;
    void (*work)(void *);
    void *context;
};

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    atomic_fetch_add(&thread->start->waiting, 1);
    while (!atomic_load_explicit(&thread->start->go, memory_order_acquire))
        ;
    thread->work(thread->context);
    return NULL;
}

void bench_run(const struct options *options, void (*work)(void *), void **contexts)
{
    if (options->threads == 1) {
        bench_begin(options);
        work(contexts[0]);
        bench_end(options);
        return;
    }
    struct start start = {0};
    struct thread *threads = calloc(options->threads, sizeof *threads);
    if (threads == NULL)
        fail("no memory for threads");
    for (unsigned i = 0; i < options->threads; i++) {
        threads[i] = (struct thread){.start = &start, .work = work, .context = contexts[i]};
        if (pthread_create(&threads[i].handle, NULL, thread_main, &threads[i]) != 0)
            fail("a thread does not start");
    }
    while (atomic_load(&start.waiting) < options->threads)
        sched_yield();
    bench_begin(options);
    atomic_store_explicit(&start.go, true, memory_order_release);
    for (unsigned i = 0; i < options->threads; i++)
        pthread_join(threads[i].handle, NULL);
    bench_end(options);
    free(threads);
}

uint64_t sequence(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * 0xD1342543DE82EF95u + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return z != 0 ? z : 1;
}
