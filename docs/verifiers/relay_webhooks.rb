# frozen_string_literal: true

require "openssl"

# Verifies webhooks of Relay: `RelayWebhooks.genuine?(request.headers, request.raw_post, [SECRET])`.
# Ruby 3.1 or newer, nothing else. Without Rails, give a lambda for the headers:
# `->(name) { request.get_header("HTTP_#{name.upcase.tr("-", "_")}") }`.
module RelayWebhooks
  FRESH_FOR_S = 300
  ED25519 = ["302a300506032b6570032100"].pack("H*").freeze

  module_function

  # Say whether a request is Relay's and fresh. It raises nothing, whatever was sent. `body` is what came, before any
  # parsing; `keys` are all that count now: secrets (whsec_…), public keys (whpk_…); `now` is when the request came.
  def genuine?(headers, body, keys, now = Time.now)
    relay = !headers["Relay-Signature"].nil?
    signatures, stamp, id =
      (relay ? %w[Relay-Signature Relay-Timestamp] : %w[webhook-signature webhook-timestamp webhook-id])
        .map { |name| headers[name].to_s.b }
    return false unless stamp.match?(/\A[0-9]{1,12}\z/) && (now.to_f - stamp.to_i).abs <= FRESH_FOR_S
    return false unless relay || id.match?(/\A[A-Za-z0-9_-]+\z/)

    signed = (relay ? "#{stamp}." : "#{id}.#{stamp}.").b + body.b
    signatures.split(relay ? "," : " ").product(keys).any? do |signature, key|
      made_by?(key, relay, signed, signature.strip)
    end
  end

  def made_by?(key, relay, signed, signature)
    if !relay && key.start_with?("whpk_") && signature.start_with?("v1a,")
      return made_by_pair?(key.delete_prefix("whpk_"), signed, signature.delete_prefix("v1a,"))
    end
    return false unless key.match?(%r{\Awhsec_[A-Za-z0-9+/]{32,88}={0,2}\z})

    secret = relay ? key : key.delete_prefix("whsec_").unpack1("m0")
    mac = OpenSSL::HMAC.digest("SHA256", secret, signed)
    made = relay ? "v1=#{mac.unpack1("H*")}" : "v1,#{[mac].pack("m0")}"
    made.bytesize == signature.bytesize && OpenSSL.fixed_length_secure_compare(made, signature)
  rescue ArgumentError
    false
  end

  def made_by_pair?(key, signed, signature)
    OpenSSL::PKey.read(ED25519 + key.unpack1("m0")).verify(nil, signature.unpack1("m0"), signed)
  rescue ArgumentError, OpenSSL::PKey::PKeyError
    false
  end
end
