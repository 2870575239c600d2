package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// count counts the words of each line.
func count(lines []string) map[string]int {
	words := make(map[string]int)
	for _, line := range lines {
		for _, word := range strings.Fields(line) {
			words[word]++
		}
	}
	return words
}

func read() ([]string, error) {
	var lines []string
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines, scanner.Err()
}

func main() {
	lines, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot read:", err)
		os.Exit(1)
	}
	for word, number := range count(lines) {
		fmt.Printf("%6d %s\n", number, word)
	}
}
