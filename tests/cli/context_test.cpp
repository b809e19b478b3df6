// `wirecall context`: servers by names of the user's own, in a folder of the test's.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "tests/cli/broker_tool.hpp"
#include "tests/cli/process.hpp"
#include "tests/server/folder.hpp"

namespace wirecall::cli {
namespace {

class Context : public BrokerTool {
 protected:
  Context() {
    setenv("XDG_CONFIG_HOME", folder_.path.c_str(), 1);
    unsetenv("WIRECALL_CONTEXT");
    unsetenv("WIRECALL_TOKEN");
  }
  ~Context() override {
    for (const char* name : {"XDG_CONFIG_HOME", "WIRECALL_CONTEXT", "WIRECALL_TOKEN"}) unsetenv(name);
  }
  // Without $WIRECALL_URL.
  static Ended plain(std::vector<std::string> words) { return cli::run(std::move(words)); }
  [[nodiscard]] std::string file() const { return folder_.path + "/wirecall/contexts.json"; }
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    text << std::ifstream{file()}.rdbuf();
    return text.str();
  }

  net::Folder folder_;
};

TEST_F(Context, names_a_server_for_all_commands) {
  EXPECT_EQ(plain({"context", "add", "lab", "--url", url_}).status, 0);
  EXPECT_EQ(plain({"call", "rpc.ping", "--context", "lab"}).output, "\"pong\"\n");
  EXPECT_EQ(plain({"context", "use", "lab"}).status, 0);
  EXPECT_EQ(plain({"call", "rpc.ping"}).output, "\"pong\"\n");
  EXPECT_EQ(plain({"context"}).output,
            "   NAME  URL" + std::string(url_.size() - 1, ' ') + "TOKEN\n*  lab   " + url_ + "\n");
  EXPECT_EQ(plain({"context", "ls", "--json"}).output,
            R"([{"name":"lab","urls":[")" + url_ + "\"],\"token\":false,\"current\":true}]\n");
  EXPECT_EQ(plain({"context", "rm", "lab"}).status, 0);
  EXPECT_EQ(plain({"context", "ls", "--json"}).output, "[]\n");
  EXPECT_EQ(plain({"context"}).output, "");
}

TEST_F(Context, what_says_more_goes_before) {
  plain({"context", "add", "here", "--url", url_});
  plain({"context", "add", "nowhere", "--url", "tcp://127.0.0.1:1"});
  plain({"context", "use", "nowhere"});
  EXPECT_EQ(plain({"call", "rpc.ping"}).status, 3);
  setenv("WIRECALL_CONTEXT", "here", 1);
  EXPECT_EQ(plain({"call", "rpc.ping"}).status, 0);
  EXPECT_EQ(cli::run({"call", "rpc.ping"}, "tcp://127.0.0.1:1").status, 3) << "$WIRECALL_URL";
  EXPECT_EQ(cli::run({"call", "rpc.ping", "--context", "here"}, "tcp://127.0.0.1:1").status, 0);
  EXPECT_EQ(plain({"call", "rpc.ping", "--context", "nowhere"}).status, 3);
  EXPECT_EQ(plain({"call", "rpc.ping", "--url", "tcp://127.0.0.1:1"}).status, 3);
  EXPECT_EQ(plain({"call", "rpc.ping", "--url", url_, "--context", "here"}).status, 2);
}

TEST_F(Context, keeps_the_token_to_itself_and_for_its_server) {
  const std::string principals = folder_.path + "/principals.json";
  std::ofstream{principals} << R"([{"name":"ada","tokens":["lab-secret"],"call":[">"],"admin":true}])";
  Process guarded{BrokerTool::serve({"--principals-file", principals})};
  const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(port_of(guarded));
  setenv("WIRECALL_TOKEN", "lab-secret", 1);
  EXPECT_EQ(plain({"context", "add", "lab", "--url", endpoint}).status, 0);
  unsetenv("WIRECALL_TOKEN");
  EXPECT_EQ(plain({"call", "rpc.methods", "--context", "lab"}).output, "[]\n");
  EXPECT_EQ(plain({"call", "rpc.methods", "--url", endpoint}).status, 1);
  const std::vector<std::string> bench{"bench", "rpc.methods", "-z", "50ms", "--warm-up", "1ms"};
  const auto with = [&bench](std::vector<std::string> more) {
    more.insert(more.begin(), bench.begin(), bench.end());
    return plain(std::move(more));
  };
  EXPECT_EQ(with({"--context", "lab"}).status, 0);
  EXPECT_EQ(with({"--url", "http" + endpoint.substr(3) + "/rpc", "--token", "lab-secret"}).status, 0);
  const Ended refused = with({"--url", endpoint, "--token", "another"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.error.find("the server refuses the token"), std::string::npos) << refused.error;
  for (const Ended& shown : {plain({"context"}), plain({"context", "ls", "--json"})}) {
    EXPECT_NE(shown.output.find("lab"), std::string::npos);
    EXPECT_EQ(shown.output.find("lab-secret"), std::string::npos);
  }
  struct stat status{};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(Context, mistakes_are_told_with_what_helps) {
  plain({"context", "add", "lab", "--url", url_});
  const std::string before = text();
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"context", "add", "x"}, "--url"},
      {{"context", "add", "x", "--url", "nowhere"}, "nowhere"},
      {{"context", "add", "a b", "--url", url_}, "white space"},
      {{"context", "add", "", "--url", url_}, "1 to 255"},
      {{"context", "use", "lap"}, "did you mean lab?"},
      {{"context", "rm", "zzzzzz"}, "wirecall context"},
      {{"context", "use"}, "one name"},
      {{"context", "adda", "x"}, "did you mean add?"},
      {{"context", "ls", "x"}, "takes no argument"},
      {{"call", "rpc.ping", "--context", "lap"}, "did you mean lab?"},
  };
  for (const auto& [words, says] : mistakes) {
    const Ended ended = plain(words);
    EXPECT_EQ(ended.status, 2) << says;
    EXPECT_EQ(ended.output, "") << says;
    EXPECT_NE(ended.error.find(says), std::string::npos) << ended.error;
  }
  EXPECT_EQ(text(), before);
  std::ofstream{file()} << "{";
  const Ended ended = plain({"call", "rpc.ping"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find(file()), std::string::npos) << ended.error;
  EXPECT_EQ(run({"call", "rpc.ping"}).status, 0) << "where it is not needed it is not read";
}

}  // namespace
}  // namespace wirecall::cli
