/* The handlers in C that are measured beside the same in C++ (compare.cpp). */
#ifndef BENCH_C_HANDLERS_H
#define BENCH_C_HANDLERS_H

#include <wirecall.h>

#ifdef __cplusplus
extern "C" {
#endif

void bench_subtract(wc_call *call, void *user);
void bench_echo(wc_call *call, void *user);
void bench_sum(wc_call *call, void *user);

#ifdef __cplusplus
}
#endif

#endif
