/* A library for LD_PRELOAD that keeps, beside each file wirecall.db and wirecall.db-*, a file of that name and .durable:
 * what a disk would have after a loss of power that takes everything that was not synced. A write goes to the file at
 * once, and to the other one when the file is synced. Nothing is really synced.
 * It intercepts what SQLite 3 writes and syncs with, without shared memory; one thread at a time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One change that was not synced: a write, or where `bytes` has none, a new size. */
struct pending {
  struct pending* next;
  off64_t offset;
  size_t size;
  int truncates;
  char bytes[];
};

/* One file, by its name; those of a store are few. */
struct file {
  char path[PATH_MAX];
  struct pending* first;
  struct pending** last;
};

#define FILES 16
static struct file files[FILES];
static int count;

static void* next_of(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

static int is_of_store(const char* path) { return strstr(path, "/wirecall.db") != NULL; }

static struct file* file_named(const char* path) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(files[i].path, path) == 0) return &files[i];
  }
  if (count == FILES) abort();
  struct file* const made = &files[count++];
  strcpy(made->path, path);
  made->first = NULL;
  made->last = &made->first;
  return made;
}

/* The file behind a descriptor; NULL for any other. */
static struct file* file_of(int descriptor) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return NULL;
  path[size] = '\0';
  return is_of_store(path) ? file_named(path) : NULL;
}

static void add(struct file* file, const void* bytes, size_t size, off64_t offset, int truncates) {
  struct pending* const one = malloc(sizeof *one + size);
  if (one == NULL) abort();
  one->next = NULL;
  one->offset = offset;
  one->size = size;
  one->truncates = truncates;
  if (size != 0) memcpy(one->bytes, bytes, size);
  *file->last = one;
  file->last = &one->next;
}

static void durable_path(const struct file* file, char* path) {
  strcpy(path, file->path);
  strcat(path, ".durable");
}

static int synced(struct file* file) {
  ssize_t (*real)(int, const void*, size_t, off64_t);
  int (*truncates)(int, off64_t);
  *(void**)&real = next_of("pwrite64");
  *(void**)&truncates = next_of("ftruncate64");
  char path[PATH_MAX + 16];
  durable_path(file, path);
  const int durable = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (durable < 0) abort();
  while (file->first != NULL) {
    struct pending* const one = file->first;
    if (one->truncates ? truncates(durable, one->offset) != 0
                       : real(durable, one->bytes, one->size, one->offset) != (ssize_t)one->size)
      abort();
    file->first = one->next;
    free(one);
  }
  file->last = &file->first;
  close(durable);
  return 0;
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  ssize_t (*real)(int, const void*, size_t, off64_t);
  *(void**)&real = next_of("pwrite64");
  const ssize_t result = real(descriptor, bytes, size, offset);
  struct file* const file = result > 0 ? file_of(descriptor) : NULL;
  if (file != NULL) add(file, bytes, (size_t)result, offset, 0);
  return result;
}

int ftruncate64(int descriptor, off64_t size) {
  int (*real)(int, off64_t);
  *(void**)&real = next_of("ftruncate64");
  const int result = real(descriptor, size);
  struct file* const file = result == 0 ? file_of(descriptor) : NULL;
  if (file != NULL) add(file, NULL, 0, size, 1);
  return result;
}

int fdatasync(int descriptor) {
  struct file* const file = file_of(descriptor);
  return file != NULL ? synced(file) : 0;
}

int fsync(int descriptor) { return fdatasync(descriptor); }

/* The name is gone from the disk at once, and what was synced of the file with it. */
int unlink(const char* path) {
  int (*real)(const char*);
  *(void**)&real = next_of("unlink");
  char whole[PATH_MAX], durable[PATH_MAX + 16];
  if (is_of_store(path) && realpath(path, whole) != NULL) {
    struct file* const file = file_named(whole);
    while (file->first != NULL) {
      struct pending* const one = file->first;
      file->first = one->next;
      free(one);
    }
    file->last = &file->first;
    durable_path(file, durable);
    real(durable);
  }
  return real(path);
}
