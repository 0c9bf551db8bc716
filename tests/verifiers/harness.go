// Answers each line of standard input with what docs/verifiers/relay_webhooks.go says of it.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"example.com/receiver/relaywebhooks"
)

func decoded(coded string) []byte {
	text, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		panic(err)
	}
	return text
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		now, err := strconv.ParseInt(parts[0], 10, 64)
		if err != nil {
			panic(err)
		}
		var keys []string
		for _, key := range strings.Split(parts[2], ",") {
			keys = append(keys, string(decoded(key)))
		}
		header := http.Header{}
		for _, each := range strings.Split(parts[3], ",") {
			if name, value, found := strings.Cut(each, "="); found {
				header.Add(name, string(decoded(value)))
			}
		}
		fmt.Println(relaywebhooks.Genuine(header, decoded(parts[1]), keys, time.Unix(now, 0)))
	}
}
