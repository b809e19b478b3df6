// Structs as parameters and results: members are found by their names, without a macro or a line of registration.
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "wirecall/registry.hpp"

enum class Unit { gram, litre, piece };  // travels by name

struct Ingredient {
  std::string name;
  double amount = 0;
  Unit unit = Unit::piece;
};

struct Recipe {
  std::string title;
  std::vector<Ingredient> ingredients;
  std::optional<int> minutes;                   // may be missing or null
  std::variant<int, std::string> portions = 1;  // 4, or "a crowd"
  std::map<std::string, std::string> notes;
};

Recipe scaled(Recipe recipe, double factor) {
  for (Ingredient& ingredient : recipe.ingredients) ingredient.amount *= factor;
  if (int* portions = std::get_if<int>(&recipe.portions)) *portions = static_cast<int>(*portions * factor);
  return recipe;
}

int main() {
  wirecall::Registry registry;
  registry.method("scaled", scaled, {"recipe", "factor"});

  const std::string reply = registry.handle(R"({"jsonrpc":"2.0","id":1,"method":"scaled","params":{"factor":2,"recipe":{
    "title":"Pancakes","portions":4,"notes":{"pan":"hot"},
    "ingredients":[{"name":"flour","amount":125,"unit":"gram"},{"name":"egg","amount":1.5,"unit":"piece"}]}}})");
  std::cout << reply << "\n";
  const bool scaled_up = reply.find(R"({"name":"flour","amount":250,"unit":"gram"})") != std::string::npos &&
                         reply.find(R"("portions":8)") != std::string::npos;

  // The way to a wrong value is told member by member, position by position.
  const std::string refusal = registry.handle(R"({"jsonrpc":"2.0","id":2,"method":"scaled","params":[{"title":"Tea",
    "ingredients":[{"name":"leaves","amount":1,"unit":"spoon"}],"portions":1,"notes":{}},2]})");
  std::cout << refusal << "\n";
  const bool told_where = refusal.find(R"("loc":["recipe","ingredients",0,"unit"])") != std::string::npos;
  return scaled_up && told_where ? 0 : 1;
}
