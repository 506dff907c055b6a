/* What the tests of both headers are made of. */
#pragma once
#include <nearpm_gpm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (\"%s\")\n", __FILE__, __LINE__, #condition, gpm_error());                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that must be refused, with a reason. */
#define REFUSED(call) CHECK((call) && strlen(gpm_error()) > 10)
