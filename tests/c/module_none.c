/* A shared library that is no module. */
int nothing_of_interest(void);
int nothing_of_interest(void) { return 0; }
