// Calls the functions of rpc_hpp.hpp in each encoding, at the endpoint that is the argument, else tcp://127.0.0.1:5000.
#include <expected>
#include <iostream>
#include <nlohmann/json.hpp>

#include "rpc_hpp.hpp"
#include "wirecall/adapt/nlohmann.hpp"
#include "wirecall/wirecall.hpp"

namespace {

bool is_right(wirecall::Client& client) {
  // Checked by the compiler: sum("1", 2) does not compile. And by name, without the header.
  bool right = client.call<sum>(1, 2) == 3;
  right = right && client.call<int>("sum", 1, 2) == 3;
  right = right && client.call<int>("larger_int", 7, 12) == 12;
  right = right && client.call<std::string>("larger_string", "7", "12") == "7";

  // A structure, and the same as a value of a JSON library.
  right = right && client.call<label>(Badge{7, "Ada", true, {255, 128, 0}}) == "guest Ada #ff8000";
  const nlohmann::json badge{{"id", 7}, {"name", "Ada"}, {"is_guest", false}, {"color", {0, 0, 255}}};
  right = right && client.call<std::string>("label", badge) == "Ada #0000ff";
  right = right && client.call<nlohmann::json>("keys", badge) == nlohmann::json{"color", "id", "is_guest", "name"};

  // A reference comes back; an error leaves it as it was.
  std::vector<double> values{1, 2, 3};
  client.call<scale>(values, 2.5);
  const std::expected<void, wirecall::Error> failed = client.try_call<scale>(values, 0);
  right = right && values == std::vector{2.5, 5.0, 7.5} && failed.error().message() == "nothing would be left of them";
  client.call("scale", std::ref(values), 2);
  right = right && values == std::vector{5.0, 10.0, 15.0};

  // Computed for the first client, and kept for all others.
  right = right && client.call<fibonacci>(80) == 23'416'728'348'467'685;
  return right && client.call<int>("fibonacci_runs") == 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const char* const uri = argc > 1 ? argv[1] : "tcp://127.0.0.1:5000";
  for (const char* const encoding : {"json", "msgpack", "cbor", "protobuf"}) {
    wirecall::Client client{uri, R"({"encoding": ")" + std::string{encoding} + R"("})"};
    const bool right = is_right(client);
    std::cout << encoding << ": " << (right ? "as if they were functions of this program\n" : "a wrong answer\n");
    if (!right) return 1;
  }
} catch (const wirecall::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
