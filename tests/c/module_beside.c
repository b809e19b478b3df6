/* A library that a module finds beside itself. */
int beside(int value);
int beside(int value) { return value + 40; }
