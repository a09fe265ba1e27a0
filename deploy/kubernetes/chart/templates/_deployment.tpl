{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* Changes the Deployment `object` of the base as the values of `root` say. Prints nothing. */ -}}
{{- define "sandbox-bridge.deployment" -}}
{{- $values := .root.Values }}
{{- $pod := .object.spec.template.spec }}
{{- $bridge := index $pod.containers 0 }}
{{- if and (not $values.autoscaling.enabled) (not (kindIs "invalid" $values.replicas)) }}
{{- $_ := set .object.spec "replicas" $values.replicas }}
{{- end }}

{{- $image := splitn ":" 2 $bridge.image }}
{{- $repository := $values.image.repository | default $image._0 }}
{{- $tag := $values.image.tag | default $image._1 }}
{{- $_ := set $bridge "image" (printf "%s:%s" $repository $tag) }}
{{- with $values.image.pullPolicy }}{{ $_ := set $bridge "imagePullPolicy" . }}{{ end }}
{{- with $values.image.pullSecrets }}
{{- $secrets := list }}
{{- range . }}{{ $secrets = append $secrets (dict "name" .) }}{{ end }}
{{- $_ := set $pod "imagePullSecrets" $secrets }}
{{- end }}
{{- $_ := set $bridge "resources" (mergeOverwrite $bridge.resources $values.resources) }}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end }}
{{- with $values.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end }}

{{- $flags := dict }}
{{- $without := list }}
{{- if not $values.tls }}
{{- $_ := set $flags "tls_cert_file" nil }}
{{- $_ := set $flags "tls_key_file" nil }}
{{- $without = append $without "tls" }}
{{- end }}
{{- if not $values.tokens }}
{{- $_ := set $flags "auth_tokens_file" nil }}
{{- $without = append $without "callers" }}
{{- end }}
{{- with $without }}{{ $_ := set $flags "insecure_public" "true" }}{{ end }}
{{- with $values.upstream }}{{ $_ := set $flags "upstream" . }}{{ end }}
{{- range $flag, $value := $values.flags }}{{ $_ := set $flags $flag $value }}{{ end }}
{{- include "sandbox-bridge.environment" (dict "container" $bridge "flags" $flags) }}

{{- $mounts := list }}
{{- range $bridge.volumeMounts }}
{{- if not (has .name $without) }}{{ $mounts = append $mounts . }}{{ end }}
{{- end }}
{{- $_ := set $bridge "volumeMounts" $mounts }}
{{- $volumes := list }}
{{- range $pod.volumes }}
{{- if not (has .name $without) }}{{ $volumes = append $volumes . }}{{ end }}
{{- end }}
{{- $_ := set $pod "volumes" $volumes }}
{{- end }}

{{- /* Sets the environment variables of `flags` in `container`; null takes one away. */ -}}
{{- define "sandbox-bridge.environment" -}}
{{- $left := deepCopy .flags }}
{{- $environment := list }}
{{- range .container.env }}
{{- $flag := .name | trimPrefix "SANDBOX_BRIDGE_" | lower }}
{{- if not (hasKey $left $flag) }}
{{- $environment = append $environment . }}
{{- else if not (kindIs "invalid" (get $left $flag)) }}
{{- $environment = append $environment (dict "name" .name "value" (get $left $flag | toString)) }}
{{- end }}
{{- $_ := unset $left $flag }}
{{- end }}
{{- range $flag, $value := $left }}
{{- if not (kindIs "invalid" $value) }}
{{- $name := printf "SANDBOX_BRIDGE_%s" (upper $flag) }}
{{- $environment = append $environment (dict "name" $name "value" (toString $value)) }}
{{- end }}
{{- end }}
{{- $_ := set .container "env" $environment }}
{{- end }}
