/* Modules: their methods are called, and what is not to be loaded is refused, with the reason.
 * usage: modules FOLDER, with the modules math, newer, fails and none */
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

/* A copy in a new folder, which others may write. */
static void test_written_by_others(wc_server *server, mode_t mode) {
  char template[] = "/tmp/wirecall-module-XXXXXX";
  char path[64];
  char bytes[4096];
  size_t size;
  FILE *from = fopen(path_of("math"), "rb");
  FILE *to;
  CHECK(from != NULL && mkdtemp(template) != NULL);
  snprintf(path, sizeof path, "%s/math.so", template);
  to = fopen(path, "wb");
  CHECK(to != NULL);
  while ((size = fread(bytes, 1, sizeof bytes, from)) != 0) CHECK(fwrite(bytes, 1, size, to) == size);
  fclose(from);
  CHECK(fclose(to) == 0 && chmod(path, mode) == 0);
  test_refused(server, path, WC_ERROR_ARGUMENT, "may be written by others");
  CHECK(chmod(path, 0755) == 0);
  CHECK(wc_server_load(server, path) == WC_ERROR_ARGUMENT); /* which has a method of that name already */
  CHECK(strstr(wc_last_error(), "math.add") != NULL);
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
  wc_server_free(server);
  return 0;
}
