// Owns the precompiled header of the tests: it belongs to a program, as they are.
int main() {}
