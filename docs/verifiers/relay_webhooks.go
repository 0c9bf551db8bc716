// Package relaywebhooks verifies webhooks of Relay:
//
//	relaywebhooks.Genuine(request.Header, body, []string{secret}, time.Now())
package relaywebhooks

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const freshFor = 5 * time.Minute

var (
	seconds  = regexp.MustCompile(`\A[0-9]{1,12}\z`)
	senderID = regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`)
	secret   = regexp.MustCompile(`\Awhsec_[A-Za-z0-9+/]{32,88}={0,2}\z`)
)

// Genuine says whether a request is Relay's and fresh. The body is what came, before any parsing; keys are all that
// count now: secrets (whsec_…), public keys (whpk_…); now is when the request came.
func Genuine(header http.Header, body []byte, keys []string, now time.Time) bool {
	form, separator := "Relay", ","
	if len(header.Values("Relay-Signature")) == 0 {
		form, separator = "Webhook", " "
	}
	stamp, id := header.Get(form+"-Timestamp"), header.Get("Webhook-Id")
	if !seconds.MatchString(stamp) {
		return false
	}
	sent, _ := strconv.ParseInt(stamp, 10, 64)
	if age := now.Sub(time.Unix(sent, 0)); age > freshFor || age < -freshFor {
		return false
	}
	signed := stamp + "." + string(body)
	if form == "Webhook" {
		if !senderID.MatchString(id) {
			return false
		}
		signed = id + "." + signed
	}
	for _, signature := range strings.Split(header.Get(form+"-Signature"), separator) {
		for _, key := range keys {
			if madeBy(key, form, signed, strings.TrimSpace(signature)) {
				return true
			}
		}
	}
	return false
}

func madeBy(key, form, signed, signature string) bool {
	if form == "Webhook" && strings.HasPrefix(key, "whpk_") && strings.HasPrefix(signature, "v1a,") {
		public, malformed := base64.StdEncoding.DecodeString(key[len("whpk_"):])
		if malformed != nil || len(public) != ed25519.PublicKeySize {
			return false
		}
		made, malformed := base64.StdEncoding.DecodeString(signature[len("v1a,"):])
		return malformed == nil && ed25519.Verify(public, []byte(signed), made)
	}
	if !secret.MatchString(key) {
		return false
	}
	if form == "Relay" {
		return hmac.Equal([]byte("v1="+hex.EncodeToString(mac([]byte(key), signed))), []byte(signature))
	}
	shared, err := base64.StdEncoding.DecodeString(key[len("whsec_"):])
	made := "v1," + base64.StdEncoding.EncodeToString(mac(shared, signed))
	return err == nil && hmac.Equal([]byte(made), []byte(signature))
}

func mac(key []byte, signed string) []byte {
	hash := hmac.New(sha256.New, key)
	hash.Write([]byte(signed))
	return hash.Sum(nil)
}
