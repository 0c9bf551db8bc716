# frozen_string_literal: true

# Answers each line of standard input with what docs/verifiers/relay_webhooks.rb says of it.
require_relative "relay_webhooks"

def text(coded)
  coded.unpack1("m0").force_encoding("UTF-8")
end

$stdin.each_line(chomp: true) do |line|
  now, body, keys, named = line.split("\t", -1)
  headers = named.split(",").to_h { |each| each.split("=", 2) }.to_h { |name, value| [name.downcase, text(value)] }
  known = keys.split(",", -1).map { |key| text(key) }
  puts RelayWebhooks.genuine?(->(name) { headers[name.downcase] }, text(body), known, Time.at(now.to_i))
end
