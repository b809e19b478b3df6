/* A library for LD_PRELOAD that keeps, beside LMDB's data.mdb, the file data.mdb.durable: what a disk would have after
 * a loss of power that takes everything that was not synced. A write goes to data.mdb at once, and to that file when
 * data.mdb is synced, or at once through a descriptor of O_DSYNC. Nothing is really synced; but where there is a FIFO
 * data.mdb.gate, a sync waits until somebody has opened it for writing and closed it. With POWER_LOSS_NOSYNC in the
 * environment LMDB is opened with MDB_NOSYNC.
 * It intercepts what LMDB 0.9 writes and syncs with: one environment without MDB_WRITEMAP, one thread at a time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* One write that was not synced. */
struct pending {
  struct pending* next;
  off_t offset;
  size_t size;
  char bytes[];
};

static int durable = -1;
static char gate[4096];
static struct pending* first;
static struct pending** last = &first;

static void* next_of(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

/* Whether it is data.mdb; opens what belongs to it. */
static int is_data(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, path, sizeof path - sizeof ".durable");
  if (size < 9 || memcmp(path + size - 9, "/data.mdb", 9) != 0) return 0;
  strcpy(path + size, ".gate");
  strcpy(gate, path);
  strcpy(path + size, ".durable");
  if (durable < 0) durable = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (durable < 0) abort();
  return 1;
}

static ssize_t write_at(int descriptor, const void* bytes, size_t size, off_t offset) {
  ssize_t (*real)(int, const void*, size_t, off_t);
  *(void**)&real = next_of("pwrite");
  return real(descriptor, bytes, size, offset);
}

static void written(int descriptor, const void* bytes, size_t size, off_t offset) {
  if ((fcntl(descriptor, F_GETFL) & O_DSYNC) != 0) {
    write_at(durable, bytes, size, offset);
    return;
  }
  struct pending* const one = malloc(sizeof *one + size);
  if (one == NULL) abort();
  one->next = NULL;
  one->offset = offset;
  one->size = size;
  memcpy(one->bytes, bytes, size);
  *last = one;
  last = &one->next;
}

static int synced(void) {
  const int waited = open(gate, O_RDONLY | O_CLOEXEC);
  char byte;
  while (waited >= 0 && read(waited, &byte, 1) > 0) continue;
  if (waited >= 0) close(waited);
  while (first != NULL) {
    struct pending* const one = first;
    write_at(durable, one->bytes, one->size, one->offset);
    first = one->next;
    free(one);
  }
  last = &first;
  return 0;
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  const ssize_t result = write_at(descriptor, bytes, size, offset);
  if (result > 0 && is_data(descriptor)) written(descriptor, bytes, (size_t)result, offset);
  return result;
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (!is_data(descriptor)) {
    ssize_t (*real)(int, const struct iovec*, int);
    *(void**)&real = next_of("writev");
    return real(descriptor, parts, count);
  }
  ssize_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const off_t offset = lseek(descriptor, 0, SEEK_CUR);
    if (pwrite(descriptor, parts[i].iov_base, parts[i].iov_len, offset) != (ssize_t)parts[i].iov_len) return -1;
    lseek(descriptor, (off_t)parts[i].iov_len, SEEK_CUR);
    sum += (ssize_t)parts[i].iov_len;
  }
  return sum;
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  ssize_t (*real)(int, const void*, size_t);
  *(void**)&real = next_of("write");
  if (!is_data(descriptor)) return real(descriptor, bytes, size);
  abort(); /* LMDB writes so where it copies an environment only. */
}

int fdatasync(int descriptor) { return is_data(descriptor) ? synced() : 0; }

int fsync(int descriptor) { return is_data(descriptor) ? synced() : 0; }

int msync(void* address, size_t size, int flags) {
  (void)address, (void)size, (void)flags;
  abort(); /* of MDB_WRITEMAP */
}

int mdb_env_open(MDB_env* env, const char* path, unsigned int flags, mdb_mode_t mode) {
  int (*real)(MDB_env*, const char*, unsigned int, mdb_mode_t);
  *(void**)&real = next_of("mdb_env_open");
  return real(env, path, flags | (getenv("POWER_LOSS_NOSYNC") != NULL ? MDB_NOSYNC : 0), mode);
}
