/* Modules: their methods are called, and what is not to be loaded is refused, with the reason.
 * usage: modules FOLDER, with the modules math, newer, fails, none, origin (and its library) and greedy */
#define _POSIX_C_SOURCE 200809L
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static const char *folder;
static const char *path_of(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  return path;
}

static void test_refused(wc_server *server, const char *path, int status, const char *why) {
  CHECK(wc_server_load(server, path) == status);
  if (strstr(wc_last_error(), why) == NULL) CHECK_TEXT(wc_last_error(), why);
}

static void copy(const char *name, const char *path) {
  char bytes[4096];
  size_t size;
  FILE *from = fopen(path_of(name), "rb");
  FILE *to = fopen(path, "wb");
  CHECK(from != NULL && to != NULL);
  while ((size = fread(bytes, 1, sizeof bytes, from)) != 0) CHECK(fwrite(bytes, 1, size, to) == size);
  fclose(from);
  CHECK(fclose(to) == 0 && chmod(path, 0755) == 0);
}

/* A copy in a new folder, which others may write; or the folder. */
static void test_written_by_others(wc_server *server, mode_t mode) {
  char template[] = "/tmp/wirecall-module-XXXXXX";
  char path[64];
  CHECK(mkdtemp(template) != NULL);
  snprintf(path, sizeof path, "%s/math.so", template);
  copy("math", path);
  CHECK(chmod(path, mode) == 0);
  test_refused(server, path, WC_ERROR_ARGUMENT, "may be written by others");
  CHECK(chmod(path, 0755) == 0 && chmod(template, mode) == 0);
  test_refused(server, path, WC_ERROR_ARGUMENT, "others may write, and so replace it: chmod go-w /tmp/wirecall-module-");
  CHECK(chmod(template, 0700) == 0);
  CHECK(chmod(path, 0755) == 0);
  CHECK(wc_server_load(server, path) == WC_ERROR_ARGUMENT); /* which has a method of that name already */
  CHECK(strstr(wc_last_error(), "math.add") != NULL);
  unlink(path);
  rmdir(template);
}

/* The loader would give the file that it knows by that path. */
static void test_another_file_of_that_name(wc_server *server) {
  char template[] = "/tmp/wirecall-module-XXXXXX";
  char path[64], new_path[72];
  CHECK(mkdtemp(template) != NULL);
  snprintf(path, sizeof path, "%s/module.so", template);
  snprintf(new_path, sizeof new_path, "%s.new", path);
  copy("none", path);
  test_refused(server, path, WC_ERROR_ARGUMENT, "exports no wirecall_module");
  copy("none", new_path);
  CHECK(rename(new_path, path) == 0);
  test_refused(server, path, WC_ERROR_ARGUMENT, "another file than the one that was loaded");
  unlink(path);
  rmdir(template);
}

/* A module is found by whatever path, and what it needs is beside the file itself. */
static void test_libraries_beside_it(wc_server *server) {
  char template[] = "/tmp/wirecall-module-XXXXXX";
  char path[64];
  CHECK(mkdtemp(template) != NULL);
  snprintf(path, sizeof path, "%s/link.so", template);
  CHECK(symlink(path_of("origin"), path) == 0);
  CHECK(wc_server_load(server, path) == WC_OK);
  CHECK_TEXT(reply_to(server, "origin.beside", NULL), RESULT("42"));
  unlink(path);
  rmdir(template);
}

int main(int argc, char **argv) {
  wc_server *server = wc_server_new(NULL);
  CHECK(argc == 2 && server != NULL);
  folder = argv[1];
  test_refused(server, "math.so", WC_ERROR_ARGUMENT, "slash");
  test_refused(server, NULL, WC_ERROR_ARGUMENT, "slash");
  test_refused(server, path_of("absent"), WC_ERROR_ARGUMENT, "cannot be opened");
  test_refused(server, "/dev/null", WC_ERROR_ARGUMENT, "is no file");
  test_refused(server, path_of("none"), WC_ERROR_ARGUMENT, "exports no wirecall_module");
  test_refused(server, path_of("newer"), WC_ERROR_ARGUMENT, "take a newer wirecall");
  test_refused(server, path_of("fails"), WC_ERROR_ARGUMENT, "rpc.");
  CHECK(strstr(reply_to(server, "math.add", "[1,2]"), "-32601") != NULL);
  CHECK(wc_server_load(server, path_of("math")) == WC_OK);
  CHECK_TEXT(reply_to(server, "math.add", "[1,2]"), RESULT("3"));
  test_refused(server, path_of("math"), WC_ERROR_ARGUMENT, "math.add");
  test_written_by_others(server, 0775);
  test_written_by_others(server, 0757);
  test_another_file_of_that_name(server);
  test_libraries_beside_it(server);
  CHECK(wc_server_load(server, path_of("greedy")) == WC_OK);
  CHECK_TEXT(reply_to(server, "greedy.refused", NULL), RESULT("-4"));
  wc_server_free(server);
  return 0;
}
