/*
 * What every benchmark program shares and what knows nothing of libpmemobj: options, clock, marks
 * around the part that is timed or counted, threads.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A tracer that may not trace is no failure of the program: it exits with this code. */
#define EXIT_NOT_TRACEABLE 77

struct options {
    const char *pool;   /* path of the pool, which must not exist */
    size_t pool_bytes;  /* its size */
    const char *variant; /* which map, or which kind of allocation */
    const char *steps;   /* kinds of calls, one after the other: KIND:BYTES:OPS,... */
    uint64_t ops;       /* operations of each thread */
    unsigned threads;   /* threads that run at the same time */
    unsigned batch;     /* operations in an outer transaction */
    unsigned adds;      /* ranges added in a transaction */
    size_t bytes;       /* size of a range or of an object */
    uint64_t seed;      /* of the keys */
    bool counted;       /* stop at the marks, for a tracer that counts instructions */
};

/* Reads the command line; says on standard error what is wrong with it and exits. */
struct options options_read(int argc, char **argv);

/* Prints a message with the program's name and exits with code 1. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

/* Begin and end of a part that is timed; the times of several add up. With `counted` the process
 * stops at both, traced by its parent. */
void bench_begin(const struct options *options);
void bench_end(const struct options *options);

/* Forgets the time between marks up to now. */
void bench_reset(void);

/* Time between marks by the wall's clock, and processor time of all threads, in nanoseconds. */
uint64_t bench_nanoseconds(void);
uint64_t bench_processor_nanoseconds(void);

/* A number of a command line from `least` to `most`; exits where it is none, naming the option. */
uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most);

/* Runs `work(context[i])` on each thread, between the marks; one thread is the caller itself. */
void bench_run(const struct options *options, void (*work)(void *), void **contexts);

/* The number at `index` of the sequence with this seed (SplitMix64): never 0. */
uint64_t sequence(uint64_t seed, uint64_t index);

#endif
