// `wirecall serve -c`: the options that a server has of its file and of the flags over it, as a user sees them.
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/process.hpp"
#include "tests/session/folder.hpp"

namespace wirecall::cli {
namespace {

struct Ended {
  int status;
  std::string output;
  std::string error;
};

class ServeConfigTest : public testing::Test {
 protected:
  std::string file(std::string_view text) {
    const std::string path = folder_.path + "/wirecall.toml";
    std::ofstream{path, std::ios::binary} << text;
    return path;
  }
  static Ended serve(std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    Process process{std::move(words)};
    Ended ended{};
    ended.output = process.rest_of_output();
    ended.error = process.rest_of_error();
    ended.status = process.wait();
    return ended;
  }
  std::string printed(std::vector<std::string> words) {
    words.emplace_back("--print-config");
    const Ended ended = serve(std::move(words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.error, "");
    return ended.output;
  }

  session::Folder folder_;
};

TEST_F(ServeConfigTest, a_server_listens_where_its_file_says) {
  Process server{{"serve", "-c", file("listen = ['" + folder_.socket() + "']\n")}};
  EXPECT_NE(server.read_error_until("nc -q1").find(folder_.socket()), std::string::npos);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(ServeConfigTest, flags_go_over_the_file) {
  const std::string path = file("port = 1\nlog_level = 'error'\n[limits]\nbatch = 2\n");
  const std::string text = printed({"-c", path, "--port", "3", "--limits-batch", "4"});
  EXPECT_NE(text.find("\nport = 3\n"), std::string::npos);
  EXPECT_NE(text.find("\nbatch = 4\n"), std::string::npos);
  EXPECT_NE(text.find("\nlog_level = \"error\"\n"), std::string::npos);
}

TEST_F(ServeConfigTest, a_port_on_the_command_line_goes_over_the_places_of_the_file) {
  const std::string path = file("listen = ['unix:/nowhere']\n");
  EXPECT_NE(printed({"-c", path}).find("\nlisten = [\"unix:/nowhere\"]\n"), std::string::npos);
  EXPECT_NE(printed({"-c", path, "--port", "3"}).find("\nlisten = []\n"), std::string::npos);
}

TEST_F(ServeConfigTest, what_is_printed_is_a_file_that_gives_the_same) {
  const std::string all = printed({"--port", "1234", "--delimiter", "\x01|\x7F", "--cpu-affinity", "0"});
  EXPECT_EQ(printed({"-c", file(all)}), all);
}

TEST_F(ServeConfigTest, a_wrong_file_is_one_message_and_status_two) {
  const std::string path = file("port = 70000\n[limits]\nbach = 1\n");
  const Ended ended = serve({"-c", path});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.error, "wirecall: " + path +
                             ": line 1: port is 70000: give a number from 0 to 65535; line 3: there is no option "
                             "limits.bach; did you mean limits.batch?\n");
}

TEST_F(ServeConfigTest, a_file_that_cannot_be_read_is_named_with_the_reason) {
  for (const std::string& path : {folder_.path, folder_.path + "/none", std::string{"/dev/zero"}}) {
    const Ended ended = serve({"-c", path});
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.error.find("file " + path), std::string::npos) << ended.error;
  }
}

}  // namespace
}  // namespace wirecall::cli
